//! A descriptor of a context that threads and event loops wait for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
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
    epoll: Epoll,
}

impl Readable {
    pub(crate) fn new(context: &Context, file: Arc<RevocableFile>) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(wait_error)?;
        let event = || EpollEvent::new(EpollFlags::EPOLLIN, 0);
        file.with(|file| {
            let flags = OFlag::O_NONBLOCK;
            fcntl(file, FcntlArg::F_SETFL(flags))?;
            epoll.add(file, event())
        })
        .ok_or_else(|| context.gone())?
        .map_err(wait_error)?;
        let close_signal = context.close_signal()?;
        epoll
            .add(close_signal.closed(), event())
            .map_err(wait_error)?;
        if let Some(removals) = close_signal.removals() {
            epoll.add(removals, event()).map_err(wait_error)?;
        }
        Ok(Self {
            context: context.clone(),
            file,
            epoll,
        })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until there may be a record to read, or the device is gone; `false` if the deadline
    /// passes.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Result<bool> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout(left)) {
            Ok(ready) => {
                self.context.check_removal();
                Ok(ready > 0 || left.is_none_or(|left| !left.is_zero()))
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
            return Err(self.context.gone());
        }
        let mut record = T::new_zeroed();
        let bytes = record.as_mut_bytes();
        let size = bytes.len();
        let read = self.file.with(|mut file: &File| file.read(bytes));
        match read.ok_or_else(|| self.context.gone())? {
            Ok(length) if length == size => Ok(Some(record)),
            // The kernel writes only whole records.
            Ok(_) => Err(Error::wait(libc::EPROTO)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.context.check_removal();
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(_) => {
                // The kernel has disconnected the file from the device.
                self.context.close();
                Err(self.context.gone())
            }
        }
    }
}

impl AsFd for Readable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

pub(crate) fn wait_error(errno: Errno) -> Error {
    Error::wait(errno as i32)
}

/// Rounds up, so that a wait does not end just before its deadline and spin.
fn timeout(left: Option<Duration>) -> PollTimeout {
    let Some(left) = left else {
        return PollTimeout::NONE;
    };
    let milliseconds = left.as_nanos().div_ceil(1_000_000);
    i32::try_from(milliseconds)
        .ok()
        .and_then(|milliseconds| PollTimeout::try_from(milliseconds).ok())
        .unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
