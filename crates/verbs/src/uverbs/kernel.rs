//! The kernel's verbs node.
//!
//! # Safety
//! One of the modules with `unsafe`: the kernel writes to addresses that commands contain,
//! and this module takes ownership of descriptors that the kernel created.
#![expect(
    unsafe_code,
    reason = "a command holds an address the kernel writes to"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rdmacm_abi::uverbs::{Header, PostSend, PostSendResponse};
use zerocopy::{FromZeros, Immutable, IntoBytes};

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
    /// Opens the node at `path`, and checks its device number: the path may name another
    /// device.
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

/// The frame of a doorbell, built in place.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Doorbell {
    header: Header,
    request: PostSend,
}

impl KernelFile {
    /// Writes a whole command.
    ///
    /// # Safety
    /// The kernel writes to the address in the command, if there is one: the response there
    /// must be as large as the header says, and nothing else may use it during this call.
    unsafe fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: `bytes` is an initialised slice, so readable for its length. The caller
        // guarantees the rest.
        let written =
            unsafe { libc::write(self.file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
impl KernelFile {
    /// An ordinary file instead of a node.
    pub(crate) fn ordinary(file: File) -> Self {
        Self {
            file,
            device: "test0".to_owned(),
            // An existing device number: that of /dev/null.
            node: libc::makedev(1, 3),
        }
    }
}

impl UverbsFile for KernelFile {
    /// One `write(2)`: the kernel accepts only a whole command.
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let frame = frame(call)?;
        // SAFETY: the kernel uses the address in the frame. `frame` wrote it to the only
        // field that the kernel reads as an address, as the implementer of `Command` has
        // proved. It is the address of the response, which the frame borrows exclusively for
        // longer than this call and whose size the frame contains.
        unsafe { self.write(frame.bytes()) }
    }

    fn ring_doorbell(&self, queue_pair: u32) -> io::Result<()> {
        let mut response = PostSendResponse::new_zeroed();
        let doorbell = Doorbell {
            header: Header::of::<PostSend>(),
            request: PostSend {
                response: (&raw mut response).expose_provenance() as u64,
                ..PostSend::doorbell(queue_pair)
            },
        };
        // SAFETY: the kernel uses the address in the field `response` of the request. It is
        // that of the response, which is of the size in the header, lives longer than this
        // call and is not used meanwhile.
        unsafe { self.write(doorbell.as_bytes()) }
    }

    fn take_fd(&self, number: u32) -> Option<OwnedFd> {
        let fd = RawFd::try_from(number).ok()?;
        // SAFETY:
        // - The kernel has opened this descriptor for the last response: it is open, has no
        //   other owner, and `close(2)` closes it. `Uverbs` calls this once for each
        //   descriptor that a response names.
        // - It is not -1, which is not a `u32`.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn memory(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn gid(&self, port: u8, index: u32) -> io::Result<Option<GidEntry>> {
        GidTable::new(&self.device, port).entry(index)
    }

    fn node(&self) -> Option<u64> {
        Some(self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_missing_node_names_it() {
        let error = KernelFile::open("rxe0", Path::new("/nonexistent/uverbs0"), 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let text = error.to_string();
        assert!(text.starts_with("open /nonexistent/uverbs0: ENOENT: the device has"));
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
