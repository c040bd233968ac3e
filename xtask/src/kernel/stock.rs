//! Prepares the stock kernel: that of the host's Debian release, and siw, which Debian leaves
//! out, built as a module from the same source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::host_packages::{self, Need};
use crate::kernel::apt::{self, Apt, Package};
use crate::kernel::cache::{Cache, DEBS, MADE, MAKING, Record};
use crate::kernel::newest::{Cached, Candidate, build_newest};
use crate::kernel::{IMAGE, Role};
use crate::process;

/// The package that depends on the current kernel of a Debian release.
const META: &str = "linux-image-amd64";
const SIW: &str = "drivers/infiniband/sw/siw";

/// One version of the kernel and the names of its packages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelPackages {
    version: String,
    release: String,
    image: String,
    source: String,
}

/// Prepares the newest kernel, unless it is the cached one.
pub(crate) fn make_newest(cache: &Cache, cached: Option<&Cached>) -> anyhow::Result<Cached> {
    let codename = host_packages::debian_codename()?;
    host_packages::install(&Need::MODULE_BUILD)?;
    let apt = Apt::for_host(cache)?;
    let metas = apt.versions_of_release(META, &codename)?;
    let newest = build_newest(
        metas.iter().filter_map(KernelPackages::from_meta),
        cached,
        |set| download(&apt, set, &cache.path(DEBS)),
        |set, debs| make(cache, set, &debs, &codename),
    )?;
    cache.remove(&[MAKING, MADE, DEBS]);
    Ok(newest)
}

impl Candidate for KernelPackages {
    fn name(&self) -> String {
        format!("stock kernel: {} {}", self.image, self.version)
    }

    fn version(&self) -> &str {
        &self.version
    }
}

impl KernelPackages {
    /// The set that a version of the meta package depends on.
    fn from_meta(meta: &Package) -> Option<Self> {
        let image = meta
            .depends
            .iter()
            .find(|name| name.starts_with("linux-image-"))?;
        let release = image.strip_prefix("linux-image-")?;
        let mut numbers = release.split('.');
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(Self {
            version: meta.version.clone(),
            release: release.to_owned(),
            image: image.clone(),
            source: format!("linux-source-{major}.{minor}"),
        })
    }
}

/// The downloaded packages of one version.
struct Debs {
    image: PathBuf,
    /// The headers and the source, to build siw.
    build: Vec<PathBuf>,
}

fn download(apt: &Apt, set: &KernelPackages, into: &Path) -> anyhow::Result<Debs> {
    let download = |name: &String| apt.download(name, &set.version, into);
    let image = download(&set.image)?;
    let headers = headers(apt, set)?;
    let build = headers.iter().chain([&set.source]).map(download);
    Ok(Debs {
        image,
        build: build.collect::<anyhow::Result<_>>()?,
    })
}

fn make(
    cache: &Cache,
    set: &KernelPackages,
    debs: &Debs,
    codename: &str,
) -> anyhow::Result<Cached> {
    let work = cache.empty(MAKING)?;
    let built = cache.empty(MADE)?;
    apt::unpack(&debs.image, &built)?;
    merge_usr(&built)?;
    let boot = built.join("boot");
    fs::rename(
        boot.join(format!("vmlinuz-{}", set.release)),
        built.join(IMAGE),
    )
    .context("move the image")?;
    fs::remove_dir_all(&boot).context("remove the other boot files")?;

    for deb in &debs.build {
        apt::unpack(deb, &work)?;
    }
    let module = build_siw(&work, set, &built)?;
    let modules = built.join("lib/modules").join(&set.release);
    let updates = modules.join("updates");
    fs::create_dir_all(&updates).context("make the module's folder")?;
    fs::copy(&module, updates.join("siw.ko")).context("copy siw")?;
    process::run(
        Command::new("depmod")
            .env("PATH", process::SYSTEM_PATH)
            .arg("-b")
            .arg(&built)
            .arg(&set.release),
    )?;

    let (version, release) = (set.version.clone(), set.release.clone());
    let record = Record {
        version,
        release,
        fits: codename.to_owned(),
    };
    let folder = cache.store(&built, Role::Stock.as_str(), &record)?;
    Ok((folder, record))
}

/// Moves the modules of later releases from `/usr/lib` to `/lib`, where `depmod -b` expects
/// them.
fn merge_usr(root: &Path) -> anyhow::Result<()> {
    let (old, new) = (root.join("lib"), root.join("usr/lib"));
    if !old.exists() {
        ensure!(new.exists(), "the kernel's package has no modules");
        fs::rename(&new, &old).context("move the modules")?;
    }
    Ok(())
}

/// The header packages of exactly this kernel and their dependencies.
fn headers(apt: &Apt, set: &KernelPackages) -> anyhow::Result<Vec<String>> {
    let name = format!("linux-headers-{}", set.release);
    let package = apt
        .versions(&name)?
        .into_iter()
        .find(|package| package.version == set.version)
        .with_context(|| format!("the mirror has no {name} {}", set.version))?;
    let dependencies = package.depends.iter().filter(|depends| {
        depends.starts_with("linux-headers-") || depends.starts_with("linux-kbuild-")
    });
    Ok([name].into_iter().chain(dependencies.cloned()).collect())
}

/// Builds siw with the unpacked headers and returns its path.
fn build_siw(work: &Path, set: &KernelPackages, built: &Path) -> anyhow::Result<PathBuf> {
    let tarball = work.join("usr/src").join(format!("{}.tar.xz", set.source));
    let inside = format!("{}/{SIW}", set.source);
    eprintln!("  unpack siw's source");
    process::run(
        Command::new("tar")
            .arg("-C")
            .arg(work)
            .arg("-xf")
            .arg(&tarball)
            .arg(&inside),
    )?;

    let sources = work.join("usr/src");
    let headers = sources.join(format!("linux-headers-{}", set.release));
    relocate(&headers, &sources)?;
    let module = work.join(inside);
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(&headers)
        .arg(format!("M={}", module.display()));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    make.arg(format!("-j{jobs}"));
    make.args(["CONFIG_RDMA_SIW=m", "modules"]);
    process::logged("build siw", &mut make, &built.join("siw.log"))?;
    Ok(module.join("siw.ko"))
}

/// Replaces the paths of installed headers in the packaged makefiles.
fn relocate(headers: &Path, sources: &Path) -> anyhow::Result<()> {
    let here = format!("{}/linux-headers-", sources.display());
    for name in ["Makefile", ".kernelvariables"] {
        let path = headers.join(name);
        if let Ok(text) = fs::read_to_string(&path) {
            let text = text.replace("/usr/src/linux-headers-", &here);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(depends: &[&str]) -> Package {
        Package {
            name: META.to_owned(),
            version: "6.12.43-1".to_owned(),
            depends: depends.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn image_and_source_follow_from_the_meta_package() {
        let set = KernelPackages::from_meta(&meta(&["linux-image-6.12.43+deb13-amd64"])).unwrap();
        assert_eq!(set.release, "6.12.43+deb13-amd64");
        assert_eq!(set.source, "linux-source-6.12");
        assert_eq!(set.image, "linux-image-6.12.43+deb13-amd64");
    }

    #[test]
    fn a_meta_package_without_an_image_is_skipped() {
        assert_eq!(KernelPackages::from_meta(&meta(&["kmod"])), None);
    }
}
