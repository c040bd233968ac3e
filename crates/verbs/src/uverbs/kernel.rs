//! The kernel's verbs node.
//!
//! # Safety
//! One of the modules with `unsafe`: it writes addresses of this
//! process into commands, and the kernel writes through them; and it takes
//! over a descriptor that the kernel made.
#![expect(
    unsafe_code,
    reason = "a command holds an address the kernel writes to"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::frame::frame;
use super::{Call, UverbsFile};
use crate::error::{Error, Result};
use crate::gid_table::{GidEntry, GidTable};

/// An open file of `/dev/infiniband/uverbsN`.
#[derive(Debug)]
pub(crate) struct KernelFile {
    file: File,
    device: String,
    node: u64,
}

impl KernelFile {
    /// Opens the node at `path`, and makes sure that it is the one meant: a path is only a
    /// name that somebody has given to a device number.
    pub(crate) fn open(device: &str, path: &Path, node: u64) -> Result<Self> {
        // std opens every file O_CLOEXEC.
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::open(path, &error))?;
        let metadata = file.metadata().map_err(|error| Error::open(path, &error))?;
        if metadata.file_type().is_char_device() && metadata.rdev() == node {
            return Ok(Self {
                file,
                device: device.to_owned(),
                node,
            });
        }
        Err(Error::OtherNode {
            path: path.to_owned(),
            device: device.to_owned(),
        })
    }
}

#[cfg(test)]
impl KernelFile {
    /// An ordinary file in the place of a node.
    pub(crate) fn ordinary(file: File) -> Self {
        Self {
            file,
            device: "test0".to_owned(),
            // One that exists: that of /dev/null.
            node: libc::makedev(1, 3),
        }
    }
}

impl UverbsFile for KernelFile {
    /// One `write(2)`: the kernel takes a command whole or not at all.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let frame = frame(call)?;
        let bytes = frame.bytes();
        // SAFETY:
        // - `bytes` is an initialised slice, so readable for its length.
        // - The kernel also follows the address in the frame. `frame` put it
        //   there, where the implementer of `Command` has proved that the kernel
        //   looks, and nowhere else; it is that of the response, which the frame
        //   borrows exclusively for longer than this call and whose size the
        //   frame states.
        let written =
            unsafe { libc::write(self.file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    fn take_fd(&self, number: u32) -> Option<OwnedFd> {
        let fd = RawFd::try_from(number).ok()?;
        // SAFETY:
        // - The kernel opened this descriptor for the response just read: it is open, nobody
        //   else owns it, and closing it takes nothing but `close(2)`. `Uverbs` calls this
        //   once for each number that a response to `execute` names.
        // - It is not -1: that is no `u32`.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn memory(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn gid(&self, port: u8, index: u32) -> io::Result<Option<GidEntry>> {
        GidTable::of(&self.device, port).entry(index)
    }

    fn node(&self) -> Option<u64> {
        Some(self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_missing_is_an_error_that_says_so() {
        let error = KernelFile::open("rxe0", Path::new("/nonexistent/uverbs0"), 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let words = error.to_string();
        assert!(words.starts_with("open /nonexistent/uverbs0: ENOENT: the device has"));
    }

    #[test]
    fn a_node_of_another_number_is_refused() {
        let null = Path::new("/dev/null");
        let number = libc::makedev(1, 3);
        assert!(KernelFile::open("rxe0", null, number).is_ok());
        let error = KernelFile::open("rxe0", null, number + 1).unwrap_err();
        assert!(error.to_string().contains("not the node of rxe0"));
    }

    #[test]
    fn an_ordinary_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = KernelFile::open("rxe0", file.path(), 0).unwrap_err();
        assert!(matches!(error, Error::OtherNode { .. }), "{error}");
    }
}
