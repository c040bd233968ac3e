//! The kernels of this user, and the newest rdma-core, kept outside every checkout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

const RECORD: &str = "kernel.json";
/// The folder of packages on their way into kernels: what an interrupted run
/// fetched is not fetched again.
pub(crate) const DEBS: &str = "debs";

/// A folder under the user's cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

/// What a cached kernel or library is, beside its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The package version it was made from.
    pub(crate) version: String,
    /// What `uname -r` says in it; a library's release.
    pub(crate) release: String,
    /// What it must be equal in to be used again: the host's Debian release,
    /// or the configuration it was built with.
    pub(crate) fits: String,
}

/// Holds the cache against another process until dropped.
#[derive(Debug)]
pub(crate) struct Hold {
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
            "the kernel's build takes no spaces and colons in {name}: set XDG_CACHE_HOME"
        );
        make(&base)?;
        Ok(Self(base))
    }

    /// A path under the cache.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// An empty folder for half-made things, on the cache's file system.
    pub(crate) fn empty(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("empty {}", path.display()))?;
        }
        make(&path)?;
        Ok(path)
    }

    /// Waits until no other process makes anything here.
    pub(crate) fn hold(&self) -> anyhow::Result<Hold> {
        let path = self.path("lock");
        let file = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((file, _)) => {
                eprintln!("waiting for another process that fills the cache ...");
                Flock::lock(file, FlockArg::LockExclusive)
                    .map_err(|(_, error)| error)
                    .with_context(|| format!("lock {}", path.display()))?
            }
        };
        Ok(Hold { _file: file })
    }

    /// The kernel kept for a role last, where it fits.
    pub(crate) fn find(&self, role: &str, fits: &str) -> Option<(PathBuf, Record)> {
        let folder = self.path(role);
        let record = fs::read(folder.join(RECORD)).ok()?;
        let record: Record = serde_json::from_slice(&record).ok()?;
        (record.fits == fits).then_some((folder, record))
    }

    /// Makes a finished folder the role's kernel, at once or not at all.
    pub(crate) fn keep(&self, made: &Path, role: &str, record: &Record) -> anyhow::Result<PathBuf> {
        let text = serde_json::to_vec_pretty(record).context("write the record")?;
        fs::write(made.join(RECORD), text).context("write the record")?;
        let folder = self.path(role);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("replace {}", folder.display()))?;
        }
        fs::rename(made, &folder).with_context(|| format!("keep {}", folder.display()))?;
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
    fn what_is_kept_is_found_while_it_fits() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        assert_eq!(cache.find("stock", "a"), None);
        let made = cache.empty("made").unwrap();
        let folder = cache.keep(&made, "stock", &record("a")).unwrap();
        assert_eq!(cache.find("stock", "a"), Some((folder, record("a"))));
        assert_eq!(cache.find("stock", "b"), None);
        assert!(!made.exists());
    }

    #[test]
    fn the_next_kernel_takes_the_place_of_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        for fits in ["a", "b"] {
            let made = cache.empty("made").unwrap();
            cache.keep(&made, "new", &record(fits)).unwrap();
        }
        assert!(cache.find("new", "a").is_none());
        assert!(cache.find("new", "b").is_some());
    }
}
