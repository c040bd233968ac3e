//! The kernel's verbs node.
//!
//! # Safety
//! One of the modules with `unsafe`: the kernel writes to addresses that commands contain,
//! this module takes ownership of descriptors that the kernel created, and it asserts that the
//! kernel's devices do what [`UverbsFile`] asks for.
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
use crate::removal::DeviceNode;

/// An open file of `/dev/infiniband/uverbsN`.
#[derive(Debug)]
pub(crate) struct KernelFile {
    file: File,
    device: String,
    node: DeviceNode,
}

impl KernelFile {
    /// Opens the node at `path`, and checks its device number: the path may name another
    /// device.
    pub(crate) fn open(device: &str, path: &Path, number: u64) -> Result<Self> {
        // First: if another device gets the number meanwhile, the one that is opened counts as
        // removed. The other way round, its removal would be missed.
        let node = DeviceNode::with_number(number);
        // std opens every file O_CLOEXEC.
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::open(path, &error))?;
        let metadata = file.metadata().map_err(|error| Error::open(path, &error))?;
        if metadata.file_type().is_char_device() && metadata.rdev() == number {
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

    pub(super) fn verbs_node(&self) -> DeviceNode {
        self.node
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
    #[inline]
    unsafe fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: `bytes` is an initialised slice, so readable for its length. The caller
        // guarantees the rest.
        let written = unsafe { write(self.file.as_raw_fd(), bytes.as_ptr(), bytes.len()) };
        if usize::try_from(written) == Ok(bytes.len()) {
            Ok(())
        } else {
            Err(write_error(written))
        }
    }
}

/// `write(2)`; returns a negative error number if it fails. Not that of libc, which is a
/// cancellation point: in a process with threads that costs more than the rest of a doorbell.
///
/// # Safety
/// As that of `write(2)`.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the path of each request")]
unsafe fn write(fd: RawFd, address: *const u8, length: usize) -> libc::c_long {
    let mut result = libc::SYS_write;
    // SAFETY: the kernel reads the memory, as the caller guarantees, and what a command says. It
    // keeps all registers but for these, uses no stack of this process, and changes no flag that
    // the compiler relies on. Other memory may change: the block does not say `nomem`.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") libc::c_long::from(fd),
            in("rsi") address,
            in("rdx") length,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As above, by libc.
///
/// # Safety
/// As that of `write(2)`.
#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
unsafe fn write(fd: RawFd, address: *const u8, length: usize) -> libc::c_long {
    // SAFETY: the caller guarantees it.
    let written = unsafe { libc::syscall(libc::SYS_write, fd, address, length) };
    if written < 0 {
        let error = io::Error::last_os_error();
        return -error.raw_os_error().map_or(1, libc::c_long::from);
    }
    written
}

/// The error of a write that has returned this.
#[cold]
#[inline(never)]
fn write_error(written: libc::c_long) -> io::Error {
    match i32::try_from(written) {
        Ok(error @ ..0) => io::Error::from_raw_os_error(error.wrapping_neg()),
        _ => io::ErrorKind::WriteZero.into(),
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
            node: DeviceNode::with_number(libc::makedev(1, 3)),
        }
    }
}

// SAFETY:
// - `Context::open` takes the provider that the node's own driver and version ask for.
// - Each queue is an allocation of the kernel with an offset that no other one of this file has
//   (`rxe_create_mmap_info`, `rdma_user_mmap_entry_insert`). The kernel frees it when nobody has
//   it mapped any more, and does not shrink it.
// - It is the driver itself whose protocol the providers assert.
// - It accesses pinned memory of registrations only, and a command that destroys an object
//   succeeds after its last access (`rxe_cleanup`, `siw_qp_free`). Any other command may fail with
//   `EIO` while the objects of a removed device are still being destroyed: the device is
//   disconnected first (`uverbs_disassociate_api_pre`), the objects are destroyed later
//   (`uverbs_destroy_ufile_hw`). A command that destroys an object does so itself or waits for
//   that, and then succeeds (`uobj_destroy`). Nothing else counts as destruction
//   (`OpenFile::is_destroyed_by`).
// The file of a unit test, which is no device, is written to and accesses nothing.
unsafe impl UverbsFile for KernelFile {
    /// One `write(2)`: the kernel accepts only a whole command.
    #[inline]
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let frame = frame(call)?;
        // SAFETY: the kernel uses the address in the frame. `frame` wrote it to the only
        // field that the kernel reads as an address, as the implementer of `Command` has
        // proved. It is the address of the response, which the frame borrows exclusively for
        // longer than this call and whose size the frame contains.
        unsafe { self.write(frame.bytes()) }
    }

    #[inline]
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
        let name = self.node.device_name();
        let name = name.as_deref().unwrap_or(&self.device);
        GidTable::new(name, port).entry(index)
    }

    fn node(&self) -> Option<u64> {
        Some(self.node.number())
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
    fn a_refused_command_has_the_kernels_error() {
        let execute = |path: &str, write: bool| {
            let file = OpenOptions::new().read(!write).write(write).open(path);
            let file = KernelFile::ordinary(file.unwrap());
            let doorbell = file.ring_doorbell(7);
            let mut response = PostSendResponse::new_zeroed();
            let command = file.execute(&mut Call::new(&PostSend::doorbell(7), &mut response));
            [doorbell, command].map(|one| one.err().and_then(|error| error.raw_os_error()))
        };
        assert_eq!(execute("/dev/null", true), [None; 2]);
        assert_eq!(execute("/dev/null", false), [Some(libc::EBADF); 2]);
        assert_eq!(execute("/dev/full", true), [Some(libc::ENOSPC); 2]);
    }

    #[test]
    fn an_ordinary_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = KernelFile::open("rxe0", file.path(), 0).unwrap_err();
        assert!(matches!(error, Error::OtherNode { .. }), "{error}");
    }
}
