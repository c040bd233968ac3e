//! The user's cache of kernels and of the newest rdma-core, outside of any checkout.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

const RECORD: &str = "kernel.json";
/// The folder of downloaded packages, which the next run uses if one is interrupted.
pub(crate) const DEBS: &str = "debs";
/// The folders in which a kernel is built, and collected.
pub(super) const MAKING: &str = "making";
pub(super) const MADE: &str = "made";

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

    /// Removes folders that are not needed any more. The next build empties what is left.
    pub(crate) fn remove(&self, names: &[&str]) {
        for path in names.iter().map(|name| self.path(name)) {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    eprintln!("  remove {}: {error}", path.display());
                }
                _ => {}
            }
        }
    }

    /// Waits until no other process builds in the cache. Fails if nothing can be built there.
    pub(crate) fn lock(&self) -> anyhow::Result<CacheLock> {
        let name = self.0.to_string_lossy();
        ensure!(
            !name.contains([' ', ':']),
            "the kernel's build fails with spaces or colons in {name}: set XDG_CACHE_HOME"
        );
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

    /// The cached kernel of a role, if it fits and has this file.
    pub(crate) fn find(&self, role: &str, fits: &str, file: &str) -> Option<(PathBuf, Record)> {
        let folder = self.path(role);
        let record = fs::read(folder.join(RECORD)).ok()?;
        let record: Record = serde_json::from_slice(&record).ok()?;
        (record.fits == fits && folder.join(file).exists()).then_some((folder, record))
    }

    /// Moves a finished folder into the cache as the role's kernel. If that is interrupted, the
    /// cache has the old kernel, the new one or none, but no part of one.
    pub(crate) fn store(
        &self,
        made: &Path,
        role: &str,
        record: &Record,
    ) -> anyhow::Result<PathBuf> {
        let text = serde_json::to_vec_pretty(record).context("write the record")?;
        fs::write(made.join(RECORD), text).context("write the record")?;
        let folder = self.path(role);
        // An interrupted run may have left one, and a folder can only replace an empty one.
        let old_name = format!("old-{role}");
        let old = self.empty(&old_name)?;
        if folder.exists() {
            fs::rename(&folder, &old).with_context(|| format!("replace {}", folder.display()))?;
        }
        fs::rename(made, &folder).with_context(|| format!("store {}", folder.display()))?;
        self.remove(&[&old_name]);
        Ok(folder)
    }
}

fn make(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "image";

    fn record(fits: &str) -> Record {
        Record {
            version: "6.1-1".to_owned(),
            release: "6.1".to_owned(),
            fits: fits.to_owned(),
        }
    }

    fn store(cache: &Cache, role: &str, fits: &str) -> PathBuf {
        let made = cache.empty("made").unwrap();
        fs::write(made.join(IMAGE), fits).unwrap();
        let folder = cache.store(&made, role, &record(fits)).unwrap();
        assert!(!made.exists());
        folder
    }

    #[test]
    fn a_cached_kernel_is_found_if_it_fits() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        let find = |fits| cache.find("stock", fits, IMAGE);
        assert_eq!(find("a"), None);
        let folder = store(&cache, "stock", "a");
        assert_eq!(find("a"), Some((folder.clone(), record("a"))));
        assert_eq!(find("b"), None);
        fs::remove_file(folder.join(IMAGE)).unwrap();
        assert_eq!(find("a"), None);
    }

    #[test]
    fn a_newer_kernel_replaces_the_cached_one() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache(directory.path().to_owned());
        // What an interrupted run has left.
        fs::write(cache.empty("old-new").unwrap().join(IMAGE), "").unwrap();
        for fits in ["a", "b"] {
            store(&cache, "new", fits);
        }
        assert!(cache.find("new", "a", IMAGE).is_none());
        assert!(cache.find("new", "b", IMAGE).is_some());
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn only_a_build_fails_with_spaces_or_colons_in_the_name() {
        let directory = tempfile::tempdir().unwrap();
        for (name, is_usable) in [("a b", false), ("a:b", false), ("ab", true)] {
            let cache = Cache(directory.path().join(name));
            make(&cache.0).unwrap();
            store(&cache, "new", "a");
            assert!(cache.find("new", "a", IMAGE).is_some());
            assert_eq!(cache.lock().is_ok(), is_usable, "{name}");
        }
    }
}
