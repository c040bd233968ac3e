//! The connection manager's device node.
//!
//! If the module `rdma_ucm` is not loaded, asking for the character device by RDMA netlink
//! makes the kernel load it. devtmpfs has created the node before the answer; udev creates
//! it a moment later.
//! Source: rdma-core's `util/open_cdev.c` and the kernel's `nldev_get_chardev`.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::NixPath;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::{Mode, major, minor};

use crate::deadline::Deadline;
use crate::netlink::{CHARDEV_GET, RdmaNetlink, Value, attribute};

/// How long to wait by default for udev to create the node: as long as rdma-core.
pub(crate) const UDEV_TIME: Duration = Duration::from_secs(5);

/// Opens the node. If it is missing, asks the kernel for the device's number, which loads
/// the module, and waits this long for the node.
pub(super) fn open(node: &CStr, timeout: Duration) -> io::Result<File> {
    open_now(node).or_else(|error| wait_if_missing(path(node), error, by_netlink, timeout))
}

/// The path of the node.
pub(super) fn path(node: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(node.to_bytes()))
}

/// Waits for a node that is missing by this error.
fn wait_if_missing(
    node: &Path,
    error: io::Error,
    number: impl FnOnce() -> io::Result<Option<u64>>,
    timeout: Duration,
) -> io::Result<File> {
    if !is_missing(&error) {
        return Err(error);
    }
    match number() {
        Ok(Some(number)) => {
            let until = Deadline::After(timeout).until(Instant::now());
            AwaitedNode::new(node, number).wait(until)
        }
        // The kernel has no such device.
        Ok(None) | Err(_) => Err(error),
    }
}

fn open_now(node: &(impl NixPath + ?Sized)) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    loop {
        match nix::fcntl::open(node, flags, Mode::empty()) {
            Ok(file) => return Ok(file.into()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// No node, or the node of a module that was unloaded.
fn is_missing(error: &io::Error) -> bool {
    let missing = [libc::ENOENT, libc::ENOTDIR, libc::ENODEV, libc::ENXIO];
    error
        .raw_os_error()
        .is_some_and(|errno| missing.contains(&errno))
}

/// The device's number, as `st_rdev` of `stat(2)` has it.
fn by_netlink() -> io::Result<Option<u64>> {
    let key = [(attribute::CHARDEV_TYPE, Value::Text("rdma_cm"))];
    RdmaNetlink::open()?.get(CHARDEV_GET, &key, |mut attributes| {
        let number = attributes.find(|(kind, _)| *kind == attribute::CHARDEV);
        number?.1.u64()
    })
}

/// A node that udev is about to create, at its path or at udev's link by number.
struct AwaitedNode {
    paths: [PathBuf; 2],
    number: u64,
}

impl AwaitedNode {
    fn new(node: &Path, number: u64) -> Self {
        let link = format!("/dev/char/{}:{}", major(number), minor(number));
        Self {
            paths: [node.to_owned(), link.into()],
            number,
        }
    }

    /// Tries to open the node at once, and after each change in the folders. Watches them before
    /// it tries, so that it misses no change.
    fn wait(&self, until: Option<Instant>) -> io::Result<File> {
        // Mostly it exists, and needs no descriptor to wait.
        let [missing, _] = match self.open_any() {
            Ok(file) => return Ok(file),
            Err(errors) => errors,
        };
        let Ok(changes) = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK) else {
            return Err(missing);
        };
        loop {
            if self.paths.iter().any(|path| watch(&changes, path).is_err()) {
                return Err(missing);
            }
            let [missing, _] = match self.open_any() {
                Ok(file) => return Ok(file),
                Err(errors) => errors,
            };
            if !wait_for(&changes, until)? {
                return Err(missing);
            }
        }
    }

    fn open_any(&self) -> Result<File, [io::Error; 2]> {
        let [node, link] = &self.paths;
        self.open(node)
            .or_else(|error| self.open(link).map_err(|other| [error, other]))
    }

    /// Opens this device only.
    fn open(&self, path: &Path) -> io::Result<File> {
        let file = open_now(path)?;
        let found = file.metadata()?;
        if found.file_type().is_char_device() && found.rdev() == self.number {
            Ok(file)
        } else {
            Err(io::Error::from_raw_os_error(libc::ENODEV))
        }
    }
}

/// Watches the folder of `path`, or the nearest ancestor that exists. Looks for it until it is the
/// same twice: a nearer one may have been created before this one was watched.
fn watch(changes: &Inotify, path: &Path) -> io::Result<()> {
    let mut watched = watch_nearest(changes, path)?;
    loop {
        let nearest = watch_nearest(changes, path)?;
        if nearest == watched {
            return Ok(());
        }
        watched = nearest;
    }
}

fn watch_nearest<'path>(changes: &Inotify, path: &'path Path) -> io::Result<Option<&'path Path>> {
    let made = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_ATTRIB;
    for folder in path.ancestors().skip(1) {
        match changes.add_watch(folder, made) {
            Err(Errno::ENOENT) => {}
            answer => return answer.map(|_| Some(folder)).map_err(io::Error::from),
        }
    }
    Ok(None)
}

/// Returns `false` if nothing changed until then.
fn wait_for(changes: &Inotify, until: Option<Instant>) -> io::Result<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Ok(false);
    }
    let milliseconds = left.map_or(u128::MAX, |left| left.as_millis().saturating_add(1));
    let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
    match poll(
        &mut [PollFd::new(changes.as_fd(), PollFlags::POLLIN)],
        timeout,
    ) {
        Ok(0) | Err(Errno::EINTR) => Ok(true),
        Ok(_) => match changes.read_events() {
            Ok(_) | Err(Errno::EAGAIN) => Ok(true),
            Err(errno) => Err(errno.into()),
        },
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::thread;
    use tempfile::TempDir;

    /// A character device, which tests link to.
    const NULL: &str = "/dev/null";

    fn open_or_wait(
        node: &Path,
        number: impl FnOnce() -> io::Result<Option<u64>>,
        timeout: Duration,
    ) -> io::Result<File> {
        open_now(node).or_else(|error| wait_if_missing(node, error, number, timeout))
    }

    fn null_number() -> u64 {
        fs::metadata(NULL).unwrap().rdev()
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_existing_node_is_opened_without_netlink() {
        let number = || unreachable!("the node exists");
        open_or_wait(Path::new(NULL), number, MINUTE).unwrap();
    }

    #[test]
    fn a_missing_node_may_exist_after_the_netlink_request() {
        let folder = TempDir::new().unwrap();
        let node = folder.path().join("infiniband/rdma_cm");
        let make = || {
            fs::create_dir(node.parent().unwrap())?;
            symlink(NULL, &node)?;
            Ok(Some(null_number()))
        };
        open_or_wait(&node, make, MINUTE).unwrap();
    }

    #[test]
    fn a_node_and_its_folder_may_be_created_later() {
        let folder = TempDir::new().unwrap();
        for round in 0..50 {
            let node = folder.path().join(format!("{round}/rdma_cm"));
            let begun = Instant::now();
            thread::scope(|scope| {
                let opened =
                    scope.spawn(|| open_or_wait(&node, || Ok(Some(null_number())), MINUTE));
                fs::create_dir(node.parent().unwrap()).unwrap();
                symlink(NULL, &node).unwrap();
                opened.join().unwrap().unwrap();
            });
            assert!(begun.elapsed() < MINUTE, "a change was missed");
        }
    }

    #[test]
    fn another_device_is_not_opened() {
        let folder = TempDir::new().unwrap();
        let node = folder.path().join("rdma_cm");
        let make = || {
            symlink("/dev/zero", &node)?;
            Ok(Some(null_number()))
        };
        thread::scope(|scope| {
            let opened = scope.spawn(|| open_or_wait(&node, make, MINUTE));
            while !node.exists() {
                thread::yield_now();
            }
            let right = folder.path().join("right");
            symlink(NULL, &right).unwrap();
            fs::rename(right, &node).unwrap();
            let opened = opened.join().unwrap().unwrap();
            assert_eq!(opened.metadata().unwrap().rdev(), null_number());
        });
    }

    #[test]
    fn a_kernel_without_the_device_is_an_error_at_once() {
        let folder = TempDir::new().unwrap();
        let node = folder.path().join("rdma_cm");
        let unsupported = || Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        let error = open_or_wait(&node, unsupported, MINUTE).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = open_or_wait(&node, || Ok(None), MINUTE).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_node_that_is_not_created_is_missing() {
        let folder = TempDir::new().unwrap();
        let node = folder.path().join("rdma_cm");
        // A number that no device has.
        let number = || Ok(Some(nix::sys::stat::makedev(4095, 77)));
        for timeout in [Duration::ZERO, Duration::from_millis(30)] {
            let begun = Instant::now();
            let error = open_or_wait(&node, number, timeout).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
            let took = begun.elapsed();
            assert!(took >= timeout && took < UDEV_TIME, "{took:?}");
        }
    }
}
