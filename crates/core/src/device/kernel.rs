//! The kernel's connection manager device.
//!
//! # Safety
//! The only module of this crate with `unsafe`: it writes addresses of this
//! process into commands, and the kernel writes through them.
#![expect(unsafe_code, reason = "a command holds addresses the kernel writes to")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use super::frame::Frame;
use super::node;
use super::readiness::Readiness;
use super::{Call, Device};
use crate::error::{Error, Result};

/// Where the kernel's device node is.
const NODE: &str = "/dev/infiniband/rdma_cm";

/// An open file of `/dev/infiniband/rdma_cm`, and what it takes to wait for it.
///
/// The descriptor is non-blocking, which makes `GET_EVENT` answer `EAGAIN`
/// instead of sleeping and changes no other command, and is closed on exec.
/// The kernel refuses every command with `EACCES` once this process's
/// credentials differ from those at the open.
#[derive(Debug)]
pub struct KernelDevice {
    ucma: File,
    readiness: Readiness,
}

impl KernelDevice {
    /// Opens the kernel's device. Where its node is missing the kernel is asked for the
    /// device by RDMA netlink, since Linux 5.3, and loads the module `rdma_ucm`; udev
    /// then has five seconds to make the node.
    ///
    /// # Errors
    /// [`Error::Open`], which says whether the module, the node or the
    /// permission is missing; [`Error::Wait`] when no descriptor to wait with is
    /// to be had.
    pub fn open() -> Result<Self> {
        Self::open_at(Path::new(NODE))
    }

    fn open_at(node: &Path) -> Result<Self> {
        let ucma = node::open(node).map_err(|error| Error::open(node, &error))?;
        let readiness = Readiness::new(ucma.as_fd()).map_err(|error| Error::wait(&error))?;
        Ok(Self { ucma, readiness })
    }

    /// One `write(2)`: the kernel takes a command whole or not at all.
    fn write(&self, frame: &Frame<'_, '_>) -> io::Result<()> {
        let bytes = frame.bytes();
        // SAFETY:
        // - `bytes` is an initialised slice, so readable for its length.
        // - The kernel also follows the addresses in the frame. `Frame::new` put
        //   each of them there, in every place where the implementer of
        //   `Command` has proved that the kernel looks, and each refers to a
        //   buffer that the call borrows (the response exclusively) for longer
        //   than this function runs and whose size the frame states.
        let written =
            unsafe { libc::write(self.ucma.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

impl Device for KernelDevice {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        self.write(&Frame::new(call)?)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        self.readiness.wait(self.ucma.as_fd(), until)
    }

    fn wake(&self) {
        self.readiness.wake();
    }

    fn take_wake(&self) -> bool {
        self.readiness.take_wake()
    }

    fn look_again(&self) {
        self.readiness.look_again();
    }

    fn take_look(&self) -> bool {
        self.readiness.take_look()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ucma.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::device::{Attachment, transact};
    use nix::sys::stat::Mode;
    use rdmacm_abi::{Listen, MigrateId, MigrateIdResponse, NoResponse};
    use std::io::Read;
    use std::time::Duration;
    use tempfile::TempDir;
    use zerocopy::FromZeros;

    /// A pipe in the place of the kernel: what is written to it can be read there.
    fn piped(folder: &TempDir, name: &str) -> KernelDevice {
        let node = folder.path().join(name);
        nix::unistd::mkfifo(&node, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        KernelDevice::open_at(&node).unwrap()
    }

    fn written(device: &KernelDevice) -> Vec<u8> {
        let mut bytes = [0; 512];
        let length = (&device.ucma).read(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn a_command_is_written_whole_and_once() {
        let folder = TempDir::new().unwrap();
        let device = piped(&folder, "pipe");
        let request = Listen::new(3, 9);
        transact(&device, &request, &mut NoResponse, Attachment::None).unwrap();
        let bytes = written(&device);
        assert_eq!(bytes[..8], [7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[8..12], 3_u32.to_ne_bytes());
        assert_eq!(bytes[12..], 9_u32.to_ne_bytes());
    }

    #[test]
    fn a_command_that_is_refused_has_its_error_number() {
        let folder = TempDir::new().unwrap();
        let device = piped(&folder, "pipe");
        let request = Listen::new(3, 9);
        // Until it is full.
        let error = std::iter::repeat_with(|| {
            transact(&device, &request, &mut NoResponse, Attachment::None)
        });
        let error = error.take(1 << 20).find_map(Result::err).unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn a_migration_names_the_descriptor_of_the_old_channel() {
        let folder = TempDir::new().unwrap();
        let (old, new) = (piped(&folder, "old"), piped(&folder, "new"));
        let mut answer = MigrateIdResponse::new_zeroed();
        let leaving = Attachment::OldChannel(&old);
        transact(&new, &MigrateId::new(3), &mut answer, leaving).unwrap();
        let bytes = written(&new);
        let fd = old.ucma_fd().unwrap().as_raw_fd();
        assert_eq!(bytes[8 + 12..8 + 16], fd.to_ne_bytes());
    }

    #[test]
    fn a_wake_up_and_a_look_are_taken_once_each() {
        let folder = TempDir::new().unwrap();
        let device = piped(&folder, "pipe");
        assert!(!device.take_wake() && !device.take_look());
        device.wake();
        device.look_again();
        assert!(device.take_wake() && device.take_look());
        assert!(!device.take_wake() && !device.take_look());
        device.wake();
        assert!(device.wait(None).unwrap());
        let soon = device.now() + Duration::from_millis(1);
        assert!(!device.wait(Some(soon)).unwrap());
        assert!(device.now() >= soon);
    }

    #[test]
    fn a_node_that_is_missing_is_an_error_that_says_so() {
        let node = Path::new("/nonexistent/rdma_cm");
        let error = KernelDevice::open_at(node).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let words = error.to_string();
        assert!(words.starts_with("open /nonexistent/rdma_cm: ENOENT: the module "));
    }
}
