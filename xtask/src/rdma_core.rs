//! Builds the newest release of rdma-core into the user's cache.
//!
//! Tests compare with the rdma-core of the host's Debian release and with the newest one.
//! Debian's packages of the newest need a newer C library than the host may have, so it is
//! built from source: the two libraries, the drivers of rxe and siw, and the tools that
//! changed.

mod build;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::host_packages;
use crate::kernel::apt::Apt;
use crate::kernel::{Cache, DEBS, Record};

/// The Debian suite with the newest release.
const SUITE: &str = "sid";
const SOURCE: &str = "rdma-core";
/// A file of each installation.
const LIBRARY: &str = "lib/librdmacm.so.1";

/// An installation of rdma-core in its own folder.
#[derive(Clone, Debug)]
pub(crate) struct RdmaCore {
    folder: PathBuf,
    version: String,
}

impl RdmaCore {
    /// Returns the cached installation, or builds the newest. With `update`, builds it again if
    /// the mirror has a newer version.
    pub(crate) fn prepare(update: bool) -> anyhow::Result<Self> {
        let cache = Cache::open()?;
        let fits = fits()?;
        if let (false, Some(found)) = (update, Self::find(&cache, &fits)) {
            return Ok(found);
        }
        let _lock = cache.lock()?;
        match Self::find(&cache, &fits) {
            Some(found) if !update => Ok(found),
            found => make_newest(&cache, found, fits).context("prepare the newest rdma-core"),
        }
    }

    fn find(cache: &Cache, fits: &str) -> Option<Self> {
        let (folder, record) = cache.find(SOURCE, fits, LIBRARY)?;
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

/// The folder in which programs built with it load its files, if it exists. Guests need it.
pub(crate) fn folder() -> anyhow::Result<Option<PathBuf>> {
    let folder = Cache::open()?.path(SOURCE);
    Ok(folder.exists().then_some(folder))
}

/// What must be equal for a cached installation to be used.
fn fits() -> anyhow::Result<String> {
    let codename = host_packages::debian_codename()?;
    let configuration = [build::OPTIONS, build::TARGETS].concat().join(" ");
    Ok(format!("{codename} {configuration}"))
}

fn make_newest(cache: &Cache, cached: Option<RdmaCore>, fits: String) -> anyhow::Result<RdmaCore> {
    let apt = Apt::for_sources_of_suite(cache, SUITE)?;
    let version = apt.newest_source(SOURCE)?;
    if let Some(cached) = cached.filter(|cached| cached.version == version) {
        return Ok(cached);
    }
    eprintln!("newest rdma-core: {version}");
    let tarball = apt.download_source(SOURCE, &version, &cache.path(DEBS))?;
    let made = build::build(cache, &tarball, &cache.path(SOURCE))?;
    let record = Record {
        release: release(&version).to_owned(),
        version: version.clone(),
        fits,
    };
    let folder = cache.store(&made, SOURCE, &record)?;
    cache.remove(&[build::WORK, DEBS]);
    Ok(RdmaCore { folder, version })
}

/// Upstream's release of a package version: that of `65.0-1.1` is 65.0.
fn release(version: &str) -> &str {
    version
        .rsplit_once('-')
        .map_or(version, |(release, _)| release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_version_without_the_revision() {
        assert_eq!(release("65.0-1.1"), "65.0");
        assert_eq!(release("65.0"), "65.0");
    }
}
