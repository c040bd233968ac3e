//! Builds the new kernel from the newest source in Debian's backports.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::host_packages::{self, Need};
use crate::kernel::apt::{self, Apt, Package};
use crate::kernel::cache::{Cache, DEBS, MADE, MAKING, Record};
use crate::kernel::newest::{Cached, Candidate, build_newest};
use crate::kernel::{HEADERS, IMAGE, Role, image, mended};
use crate::process;

const SUITE: &str = "trixie-backports";
const SOURCE: &str = "linux-source-";
/// The oldest release with every ucma command.
const OLDEST: (u32, u32) = (6, 18);
/// How many sources to try: each takes minutes.
const MAX_TRIES: usize = 3;
/// The configuration fragment, merged over `tinyconfig`.
const CONFIG: &str = include_str!("../../kernel.config");

/// Builds the newest kernel, unless it is the cached one.
pub(crate) fn make_newest(cache: &Cache, cached: Option<&Cached>) -> anyhow::Result<Cached> {
    // Only Debian has the suite and its keys.
    host_packages::debian_codename()?;
    host_packages::install(&Need::KERNEL_BUILD)?;
    let apt = Apt::for_suite(cache, SUITE)?;
    let newest = build_newest(
        candidates(&apt)?.into_iter().take(MAX_TRIES),
        cached,
        |source| apt.download(&source.name, &source.version, &cache.path(DEBS)),
        |source, deb| make(cache, source, &deb),
    )?;
    cache.remove(&[MAKING, MADE, DEBS]);
    Ok(newest)
}

impl Candidate for Package {
    fn name(&self) -> String {
        format!("new kernel: {} {}", self.name, self.version)
    }

    fn version(&self) -> &str {
        &self.version
    }
}

/// The sources that are new enough: first the newest of each series, then the older ones.
fn candidates(apt: &Apt) -> anyhow::Result<Vec<Package>> {
    let mut series: Vec<_> = apt
        .names(SOURCE)?
        .into_iter()
        .filter_map(|name| Some((series(&name)?, name)))
        .filter(|(series, _)| *series >= OLDEST)
        .collect();
    series.sort();
    ensure!(
        !series.is_empty(),
        "{SUITE} has no linux-source of {OLDEST:?} or later"
    );
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for (_, name) in series.iter().rev() {
        let mut versions = apt.versions(name)?.into_iter();
        first.extend(versions.next());
        later.extend(versions);
    }
    Ok(first.into_iter().chain(later).collect())
}

/// The series of a source package: that of `linux-source-7.2` is 7.2.
fn series(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix(SOURCE)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn make(cache: &Cache, source: &Package, deb: &Path) -> anyhow::Result<Cached> {
    let work = cache.empty(MAKING)?;
    eprintln!("  unpack more than a gigabyte");
    apt::unpack(deb, &work)?;
    let tarball = work.join("usr/src").join(format!("{}.tar.xz", source.name));
    process::run(
        Command::new("tar")
            .arg("-C")
            .arg(&work)
            .arg("-xf")
            .arg(&tarball),
    )?;
    let tree = work.join(&source.name);
    mended::mend(&tree)?;

    let built = cache.empty(MADE)?;
    build(&tree, &built)?;
    let image = built.join(IMAGE);
    let release = image::release(&image)?;
    let version = source.version.clone();
    let record = Record {
        version,
        release,
        fits: fits(),
    };
    let folder = cache.store(&built, Role::New.as_str(), &record)?;
    Ok((folder, record))
}

/// What a cached kernel was built with.
pub(crate) fn fits() -> String {
    format!("{CONFIG}{}", mended::NAME)
}

/// Configures and builds the tree, and copies the needed files.
fn build(tree: &Path, built: &Path) -> anyhow::Result<()> {
    let fragment = tree.join("rdmacm.config");
    fs::write(&fragment, CONFIG).context("write the configuration")?;
    let log = |name: &str| built.join(format!("{name}.log"));
    let make = || {
        let mut make = Command::new("make");
        make.current_dir(tree);
        make
    };
    process::logged("defaults", make().arg("tinyconfig"), &log("tinyconfig"))?;
    let mut merge = Command::new("scripts/kconfig/merge_config.sh");
    merge
        .args(["-m", ".config", "rdmacm.config"])
        .current_dir(tree);
    process::logged("merge", &mut merge, &log("merge"))?;
    process::logged(
        "configure",
        make().arg("olddefconfig"),
        &log("olddefconfig"),
    )?;
    check_config(&fs::read_to_string(tree.join(".config")).context("read the configuration")?)?;

    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    process::logged(
        "build",
        make().arg(format!("-j{jobs}")).arg("bzImage"),
        &log("build"),
    )?;
    process::logged("headers", make().arg("headers"), &log("headers"))?;

    fs::copy(tree.join("arch/x86/boot/bzImage"), built.join(IMAGE)).context("copy the image")?;
    fs::copy(tree.join(".config"), built.join("config")).context("copy the configuration")?;
    let headers = built.join(HEADERS);
    let folder = headers
        .parent()
        .context("the headers' path has no parent")?;
    fs::create_dir_all(folder).context("make the headers' folder")?;
    process::run(
        Command::new("cp")
            .arg("-r")
            .arg(tree.join("usr/include"))
            .arg(headers),
    )
}

/// Checks that the configuration has the options that guests need: a source in which an option
/// was renamed builds without it.
fn check_config(config: &str) -> anyhow::Result<()> {
    let missing: Vec<_> = [
        "RDMA_RXE",
        "RDMA_SIW",
        "INFINIBAND_USER_ACCESS",
        "VIRTIO_CONSOLE",
    ]
    .into_iter()
    .filter(|option| {
        !config
            .lines()
            .any(|line| line == format!("CONFIG_{option}=y"))
    })
    .collect();
    ensure!(
        missing.is_empty(),
        "its configuration lacks {}",
        missing.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_parsed_from_the_package_name() {
        assert_eq!(series("linux-source-7.2"), Some((7, 2)));
        assert!(series("linux-source-6.6") < Some(OLDEST));
        assert!(series("linux-source-10.0") > Some(OLDEST));
        assert_eq!(series("linux-source-7.2-rt"), None);
        assert_eq!(series("linux-source"), None);
    }

    #[test]
    fn a_configuration_without_siw_is_refused() {
        assert!(check_config(CONFIG).is_ok());
        let error = check_config(&CONFIG.replace("CONFIG_RDMA_SIW=y", "")).unwrap_err();
        assert!(error.to_string().contains("RDMA_SIW"), "{error}");
    }
}
