//! The user's cache of kernels and of the newest rdma-core, outside of any checkout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

const RECORD: &str = "kernel.json";
/// The folder of downloaded packages, which the next run uses if one is interrupted.
pub(crate) const DEBS: &str = "debs";

/// A folder under the user's cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

/// The description of a cached kernel or library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The version of its package.
    pub(crate) version: String,
    /// A kernel's `uname -r`; a library's release.
    pub(crate) release: String,
    /// What must be equal for it to be used: the host's Debian release, or the configuration
    /// that it was built with.
    pub(crate) fits: String,
}

/// Excludes other processes from the cache until dropped.
#[derive(Debug)]
pub(crate) struct CacheLock {
    _file: Flock<File>,
}

impl Cache {
    /// `$XDG_CACHE_HOME/rdmacm`, or `~/.cache/rdmacm`.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let base = match named("XDG_CACHE_HOME") {
            Some(cache) => PathBuf::from(cache),
            None => Path::new(&named("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?)
                .join(".cache"),
        };
        let base = std::path::absolute(base.join("rdmacm")).context("find the cache")?;
        let name = base.to_string_lossy();
        ensure!(
            !name.contains([' ', ':']),
            "the kernel's build fails with spaces or colons in {name}: set XDG_CACHE_HOME"
        );
        make(&base)?;
        Ok(Self(base))
    }

    /// A path under the cache.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes an empty folder for unfinished files, on the file system of the cache.
    pub(crate) fn empty(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("empty {}", path.display()))?;
        }
        make(&path)?;
        Ok(path)
    }

    /// Waits until no other process writes to the cache.
    pub(crate) fn lock(&self) -> anyhow::Result<CacheLock> {
        let path = self.path("lock");
        let file = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((file, _)) => {
                eprintln!("waiting for another process that writes to the cache ...");
                Flock::lock(file, FlockArg::LockExclusive)
                    .map_err(|(_, error)| error)
                    .with_context(|| format!("lock {}", path.display()))?
            }
        };
        Ok(CacheLock { _file: file })
    }

    /// The cached kernel of a role, if it fits.
    pub(crate) fn find(&self, role: &str, fits: &str) -> Option<(PathBuf, Record)> {
        let folder = self.path(role);
        let record = fs::read(folder.join(RECORD)).ok()?;
        let record: Record = serde_json::from_slice(&record).ok()?;
        (record.fits == fits).then_some((folder, record))
    }

    /// Moves a finished folder into the cache as the role's kernel, atomically.
    pub(crate) fn store(
        &self,
        made: &Path,
        role: &str,
        record: &Record,
    ) -> anyhow::Result<PathBuf> {
        let text = serde_json::to_vec_pretty(record).context("write the record")?;
        fs::write(made.join(RECORD), text).context("write the record")?;
        let folder = self.path(role);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("replace {}", folder.display()))?;
        }
        fs::rename(made, &folder).with_context(|| format!("store {}", folder.display()))?;
        Ok(folder)
    }
}

fn make(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fits: &str) -> Record {
        Record {
            version: "6.1-1".to_owned(),
            release: "6.1".to_owned(),
            fits: fits.to_owned(),
        }
    }

    #[test]
    fn a_cached_kernel_is_found_if_it_fits() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        assert_eq!(cache.find("stock", "a"), None);
        let made = cache.empty("made").unwrap();
        let folder = cache.store(&made, "stock", &record("a")).unwrap();
        assert_eq!(cache.find("stock", "a"), Some((folder, record("a"))));
        assert_eq!(cache.find("stock", "b"), None);
        assert!(!made.exists());
    }

    #[test]
    fn a_newer_kernel_replaces_the_cached_one() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        for fits in ["a", "b"] {
            let made = cache.empty("made").unwrap();
            cache.store(&made, "new", &record(fits)).unwrap();
        }
        assert!(cache.find("new", "a").is_none());
        assert!(cache.find("new", "b").is_some());
    }
}
