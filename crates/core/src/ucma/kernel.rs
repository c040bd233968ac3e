//! The kernel's ucma file.
//!
//! # Safety
//! The only module of this crate with `unsafe`: it writes addresses of this
//! process into commands, and the kernel writes through them.
#![expect(unsafe_code, reason = "a command holds addresses the kernel writes to")]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rdmacm_abi::CommandNumber;

use super::frame::fill_in;
use super::node;
use super::readiness::{self, Readiness};
use super::{Call, UcmaFile};
use crate::error::{Error, Result};

/// The path of the kernel's device node.
const NODE: &CStr = c"/dev/infiniband/rdma_cm";

/// An open `/dev/infiniband/rdma_cm`, with the descriptors to wait on it.
///
/// The descriptor is closed on exec. It is non-blocking, which makes `GET_EVENT`
/// fail with `EAGAIN` instead of blocking and changes no other command. The
/// kernel refuses every command with `EACCES` once this process's credentials
/// differ from those at the open.
#[derive(Debug)]
pub struct KernelFile {
    ucma: File,
    readiness: Readiness,
}

impl KernelFile {
    /// Opens the kernel's device node. If the node is missing, this asks the kernel
    /// for the device by RDMA netlink (Linux 5.3 or newer), which loads the module
    /// `rdma_ucm`, and waits up to five seconds for udev to create the node, see
    /// [`ChannelOptions::device_node_timeout`](crate::ChannelOptions::device_node_timeout).
    ///
    /// # Errors
    /// [`Error::Open`], which says whether the module, the node or the
    /// permission is missing.
    pub fn open() -> Result<Self> {
        Self::open_within(node::UDEV_TIME)
    }

    /// As [`open`](Self::open), with another time to wait for the node.
    pub(crate) fn open_within(timeout: Duration) -> Result<Self> {
        Self::open_at(NODE, timeout)
    }

    /// One `write(2)`: the kernel takes a command whole or not at all.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the layout of a command is a constant where it is sent"
    )]
    pub(super) fn write(&self, call: &mut Call<'_>) -> io::Result<()> {
        let is_read = call.number() == CommandNumber::GET_EVENT;
        if is_read {
            self.readiness.take_failure()?;
        }
        let Some(bytes) = fill_in(call) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // SAFETY:
        // - `bytes` is an initialised slice, so readable for its length.
        // - The kernel also follows the addresses in it. `fill_in` wrote each of them,
        //   wherever the implementer of `Command` has proved that the kernel reads one.
        //   Each refers to a buffer that the call borrows (the response exclusively), for
        //   longer than this function runs and of the size that the bytes state: `Call`
        //   is made only of a request, its header and its response, and gives out no
        //   way to change the first two.
        let written =
            unsafe { libc::write(self.ucma.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        if usize::try_from(written) == Ok(bytes.len()) {
            if is_read {
                self.readiness.found_event();
            }
            return Ok(());
        }
        let error = refusal(written);
        if is_read {
            self.readiness.found_no_event();
        }
        Err(error)
    }

    /// Waits for events; returns `None` if the clock has reached `until` before.
    pub(super) fn wait_before(
        &self,
        until: Option<Instant>,
        only_kernel: bool,
    ) -> io::Result<Option<bool>> {
        let left = until.map(time_left);
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let ucma = self.ucma.as_fd();
        if only_kernel {
            return readiness::wait_for_kernel(ucma, left).map(|()| Some(false));
        }
        self.readiness.wait(ucma, None, left).map(Some)
    }

    fn open_at(node: &CStr, timeout: Duration) -> Result<Self> {
        let ucma =
            node::open(node, timeout).map_err(|error| Error::open(node::path(node), &error))?;
        Ok(Self {
            ucma,
            readiness: Readiness::default(),
        })
    }
}

fn time_left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The error of a `write(2)` that did not write everything.
#[cold]
fn refusal(written: isize) -> io::Error {
    if written < 0 {
        io::Error::last_os_error()
    } else {
        io::ErrorKind::WriteZero.into()
    }
}

impl UcmaFile for KernelFile {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        self.write(call)
    }

    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let left = until.map(time_left);
        self.readiness.wait(self.ucma.as_fd(), other, left)
    }

    fn has_signal(&self) -> bool {
        self.readiness.has_flag()
    }

    fn wake(&self) {
        self.readiness.wake();
    }

    fn take_wake(&self) -> bool {
        self.readiness.take_wake()
    }

    fn notify(&self) {
        self.readiness.notify();
    }

    fn take_notification(&self) -> bool {
        self.readiness.take_notification()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn open_readiness(&self) -> io::Result<()> {
        self.readiness.open(self.ucma.as_fd())
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.fd(self.ucma.as_fd())
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ucma.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::ucma::{Attachment, transact};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::stat::Mode;
    use rdmacm_abi::{EventResponse, GetEvent, Listen, MigrateId, MigrateIdResponse, NoResponse};
    use std::ffi::CString;
    use std::io::{Read, Write};
    use std::os::unix::ffi::OsStringExt;
    use tempfile::TempDir;
    use zerocopy::FromZeros;

    /// A pipe in place of the kernel: what is written to it can be read back.
    fn pipe_file(folder: &TempDir, name: &str) -> KernelFile {
        let node = folder.path().join(name);
        nix::unistd::mkfifo(&node, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let node = CString::new(node.into_os_string().into_vec()).unwrap();
        KernelFile::open_at(&node, Duration::ZERO).unwrap()
    }

    fn read_back(ucma: &KernelFile) -> Vec<u8> {
        let mut bytes = [0; 512];
        let length = (&ucma.ucma).read(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn a_command_is_one_write() {
        let folder = TempDir::new().unwrap();
        let ucma = pipe_file(&folder, "pipe");
        let request = Listen::new(3, 9);
        transact(&ucma, &request, &mut NoResponse, Attachment::None).unwrap();
        let bytes = read_back(&ucma);
        assert_eq!(bytes[..8], [7, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[8..12], 3_u32.to_ne_bytes());
        assert_eq!(bytes[12..], 9_u32.to_ne_bytes());
    }

    #[test]
    fn a_refused_command_returns_its_error_number() {
        let folder = TempDir::new().unwrap();
        let ucma = pipe_file(&folder, "pipe");
        let request = Listen::new(3, 9);
        // Until the pipe is full.
        let error =
            std::iter::repeat_with(|| transact(&ucma, &request, &mut NoResponse, Attachment::None));
        let error = error.take(1 << 20).find_map(Result::err).unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn a_migration_names_the_descriptor_of_the_old_file() {
        let folder = TempDir::new().unwrap();
        let (old, new) = (pipe_file(&folder, "old"), pipe_file(&folder, "new"));
        let mut answer = MigrateIdResponse::new_zeroed();
        let old_file = Attachment::OldChannel(&old);
        transact(&new, &MigrateId::new(3), &mut answer, old_file).unwrap();
        let bytes = read_back(&new);
        let fd = old.ucma_fd().unwrap().as_raw_fd();
        assert_eq!(bytes[8 + 12..8 + 16], fd.to_ne_bytes());
    }

    #[test]
    fn a_wake_up_and_a_notification_are_taken_once_each() {
        let folder = TempDir::new().unwrap();
        let ucma = pipe_file(&folder, "pipe");
        assert!(!ucma.take_wake() && !ucma.take_notification());
        ucma.wake();
        ucma.notify();
        assert!(ucma.take_wake() && ucma.take_notification());
        assert!(!ucma.take_wake() && !ucma.take_notification());
        ucma.wake();
        assert!(ucma.wait(None, None).unwrap());
        let soon = ucma.now() + Duration::from_millis(1);
        assert!(!ucma.wait(Some(soon), None).unwrap());
        assert!(ucma.now() >= soon);
    }

    #[test]
    fn a_wait_for_the_kernel_ends_with_an_event_only_and_opens_no_descriptor() {
        let folder = TempDir::new().unwrap();
        let ucma = pipe_file(&folder, "pipe");
        ucma.wake();
        let soon = ucma.now() + Duration::from_millis(1);
        assert_eq!(ucma.wait_before(Some(soon), true).unwrap(), Some(false));
        assert!(ucma.now() >= soon);
        assert_eq!(ucma.wait_before(Some(soon), true).unwrap(), None);
        (&ucma.ucma).write_all(b"event").unwrap();
        assert_eq!(ucma.wait_before(None, true).unwrap(), Some(false));
        assert!(ucma.readiness.is_closed());
        assert_eq!(ucma.wait_before(None, false).unwrap(), Some(true));
    }

    /// A forked child may have made it readable.
    #[test]
    fn reads_that_find_no_event_clear_a_readiness_without_a_cause() {
        let folder = TempDir::new().unwrap();
        let ucma = pipe_file(&folder, "pipe");
        let (quiet, _keep_open) = nix::unistd::pipe().unwrap();
        let readiness = ucma.readiness.fd(quiet.as_fd());
        let readable = || {
            let mut fds = [PollFd::new(readiness, PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        let read = || {
            let mut answer = EventResponse::new_zeroed();
            transact(&ucma, &GetEvent::new(), &mut answer, Attachment::None)
        };
        // Once the pipe is full, there is no event.
        while read().is_ok() {}
        ucma.readiness.wake_in_a_child();
        assert!(readable());
        for _ in 0..100 {
            read().unwrap_err();
        }
        assert!(!readable());
    }

    #[test]
    fn the_error_for_a_missing_node_names_it() {
        let missing = KernelFile::open_at(c"/nonexistent/rdma_cm", Duration::ZERO);
        let error = missing.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let words = error.to_string();
        assert!(words.starts_with("open /nonexistent/rdma_cm: ENOENT: the module "));
    }
}
