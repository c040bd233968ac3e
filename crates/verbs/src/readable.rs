//! A descriptor of a context that threads and event loops wait for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use zerocopy::{FromBytes, IntoBytes};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::revocable_file::RevocableFile;

/// A descriptor of a context from which records are read. An epoll descriptor waits for it
/// and for the closing of the context: unlike a thread that sleeps on the file itself, it
/// does not delay the removal of the device.
#[derive(Debug)]
pub(crate) struct Readable {
    context: Context,
    file: Arc<RevocableFile>,
    /// Opened when it is first waited for or read: to watch a descriptor that many others watch
    /// takes the kernel longer the more there are.
    epoll: OnceLock<Epoll>,
    /// The last read returned a record.
    has_read: AtomicBool,
}

/// What ends a wait, in the order in which the descriptors are added.
const RECORD: u64 = 0;
const CLOSED: u64 = 1;
const REMOVALS: u64 = 2;

impl Readable {
    pub(crate) fn new(context: &Context, file: Arc<RevocableFile>) -> Self {
        Self {
            context: context.clone(),
            file,
            epoll: OnceLock::new(),
            has_read: AtomicBool::new(false),
        }
    }

    fn epoll(&self) -> Result<&Epoll> {
        if let Some(epoll) = self.epoll.get() {
            return Ok(epoll);
        }
        let opened = self.open()?;
        Ok(self.epoll.get_or_init(|| opened))
    }

    /// Makes the file non-blocking, and an epoll descriptor that watches it.
    fn open(&self) -> Result<Epoll> {
        if self.context.is_in_child() {
            // A thread of the parent may have been closing the file at the fork.
            return Err(self.context.closed_error());
        }
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(wait_error)?;
        let event = |what| EpollEvent::new(EpollFlags::EPOLLIN, what);
        let added = self.file.with(|file| {
            let flags = OFlag::O_NONBLOCK;
            fcntl(file, FcntlArg::F_SETFL(flags))?;
            epoll.add(file, event(RECORD))
        });
        added
            .ok_or_else(|| self.context.closed_error())?
            .map_err(wait_error)?;
        let close_signal = self.context.close_signal()?;
        let added = epoll.add(close_signal.closed(), event(CLOSED));
        added.map_err(wait_error)?;
        if let Some(removals) = close_signal.removals() {
            let added = epoll.add(removals, event(REMOVALS));
            added.map_err(wait_error)?;
        }
        Ok(epoll)
    }

    /// A descriptor that is readable while there is a record, and after the context was closed.
    pub(crate) fn readiness(&self) -> Result<BorrowedFd<'_>> {
        Ok(self.epoll()?.0.as_fd())
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until there may be a record to read, or the device is gone; `false` if the deadline
    /// passes.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Result<bool> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut ready = [EpollEvent::empty(); 3];
        match self.epoll()?.wait(&mut ready, timeout(left)) {
            Ok(count) => {
                let mut ready = ready.iter().take(count);
                if ready.any(|event| event.data() == REMOVALS) {
                    self.context.check_removal();
                }
                Ok(count > 0 || left.is_none_or(|left| !left.is_zero()))
            }
            // The caller checks and waits again.
            Err(Errno::EINTR) => Ok(true),
            Err(errno) => Err(wait_error(errno)),
        }
    }

    /// Reads one record, if there is one.
    pub(crate) fn read<T: FromBytes + IntoBytes>(&self) -> Result<Option<T>> {
        if self.context.is_in_child() {
            // The records belong to the parent process.
            return Err(self.context.closed_error());
        }
        self.epoll()?;
        let mut record = T::new_zeroed();
        let bytes = record.as_mut_bytes();
        let size = bytes.len();
        let read = self.file.with(|mut file: &File| file.read(bytes));
        match read.ok_or_else(|| self.context.closed_error())? {
            Ok(length) if length == size => {
                self.has_read.store(true, Ordering::Relaxed);
                Ok(Some(record))
            }
            // The kernel writes only whole records.
            Ok(_) => Err(Error::wait(libc::EPROTO)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // What made the descriptor readable may have been the record before. If it
                // is a removal, the descriptor stays readable and the next read checks it.
                if !self.has_read.swap(false, Ordering::Relaxed) {
                    self.context.check_removal();
                }
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(_) => {
                // The kernel has disconnected the file from the device.
                self.context.close();
                Err(self.context.closed_error())
            }
        }
    }
}

pub(crate) fn wait_error(errno: Errno) -> Error {
    Error::wait(errno as i32)
}

/// Rounds up, so that a wait does not end just before its deadline and spin.
fn timeout(left: Option<Duration>) -> EpollTimeout {
    let Some(left) = left else {
        return EpollTimeout::NONE;
    };
    EpollTimeout::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(EpollTimeout::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
