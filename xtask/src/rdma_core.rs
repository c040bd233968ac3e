//! The newest release of rdma-core, built once into the user's cache.
//!
//! The host's Debian release has the C libraries that its programs are built with;
//! the tests compare with the newest ones as well. Debian's packages of those want a
//! newer C library than the host may have, so their source is built: the two
//! libraries, the drivers of rxe and siw, and the tools that changed.

mod build;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::host_packages;
use crate::kernel::apt::Apt;
use crate::kernel::{Cache, DEBS, Record};

/// Where Debian's newest release of it is.
const SUITE: &str = "sid";
const SOURCE: &str = "rdma-core";

/// An installation in a folder of its own.
#[derive(Clone, Debug)]
pub(crate) struct RdmaCore {
    folder: PathBuf,
    version: String,
}

impl RdmaCore {
    /// The one in the cache, or the newest, made now. With `update`, made again if the
    /// mirror has a newer one.
    pub(crate) fn prepare(update: bool) -> anyhow::Result<Self> {
        let cache = Cache::open()?;
        let fits = fits()?;
        if let (false, Some(found)) = (update, Self::find(&cache, &fits)) {
            return Ok(found);
        }
        let _hold = cache.hold()?;
        match Self::find(&cache, &fits) {
            Some(found) if !update => Ok(found),
            found => make_newest(&cache, found, fits).context("prepare the newest rdma-core"),
        }
    }

    fn find(cache: &Cache, fits: &str) -> Option<Self> {
        let (folder, record) = cache.find(SOURCE, fits)?;
        let version = record.version;
        Some(Self { folder, version })
    }

    /// Its headers.
    pub(crate) fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// Its libraries.
    pub(crate) fn lib(&self) -> PathBuf {
        self.folder.join("lib")
    }

    /// Its tools.
    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }
}

impl std::fmt::Display for RdmaCore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "rdma-core (Debian source {})", self.version)
    }
}

/// The folder that programs built with it look for its files in, where it is there: a
/// guest must see it.
pub(crate) fn folder() -> anyhow::Result<Option<PathBuf>> {
    let folder = Cache::open()?.path(SOURCE);
    Ok(folder.exists().then_some(folder))
}

/// What it must have been built for and with to be used again.
fn fits() -> anyhow::Result<String> {
    let codename = host_packages::debian_codename()?;
    let recipe = [build::OPTIONS, build::TARGETS].concat().join(" ");
    Ok(format!("{codename} {recipe}"))
}

fn make_newest(cache: &Cache, kept: Option<RdmaCore>, fits: String) -> anyhow::Result<RdmaCore> {
    let apt = Apt::sources_of_suite(cache, SUITE)?;
    let version = apt.newest_source(SOURCE)?;
    if let Some(kept) = kept.filter(|kept| kept.version == version) {
        return Ok(kept);
    }
    eprintln!("newest rdma-core: {version}");
    let tarball = apt.download_source(SOURCE, &version, &cache.path(DEBS))?;
    let made = build::build(cache, &tarball, &cache.path(SOURCE))?;
    let record = Record {
        release: release(&version).to_owned(),
        version: version.clone(),
        fits,
    };
    let folder = cache.keep(&made, SOURCE, &record)?;
    clean_up(cache)?;
    Ok(RdmaCore { folder, version })
}

fn clean_up(cache: &Cache) -> anyhow::Result<()> {
    let folders = [cache.path(build::WORK), cache.path(DEBS)];
    folders
        .iter()
        .try_for_each(std::fs::remove_dir_all)
        .context("clean up")
}

/// `65.0-1.1` is upstream's 65.0.
fn release(version: &str) -> &str {
    version
        .rsplit_once('-')
        .map_or(version, |(release, _)| release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_of_a_release() {
        assert_eq!(release("65.0-1.1"), "65.0");
        assert_eq!(release("65.0"), "65.0");
    }
}
