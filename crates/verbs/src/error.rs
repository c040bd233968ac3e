//! Errors of the verbs.

use std::io;
use std::path::{Path, PathBuf};

use rdmacm_abi::uverbs::CommandNumber;
use rdmacm_core::{DriverId, ErrnoName};

use crate::operation::Operation;

mod cause;
mod command;
mod post_error;
#[cfg(test)]
mod tests;

pub use command::CommandError;
pub use post_error::PostError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the verbs. Errors are equal if all their fields are, so tests can compare
/// whole results.
///
/// The text is complete: it includes what the error holds, and
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device has no verbs node.
    #[error(
        "open {device}: it has no verbs node: the device is gone, or the module ib_uverbs is \
         not loaded: modprobe ib_uverbs"
    )]
    NoNode {
        /// The device's name, or its GUID if it has no name any more.
        device: String,
    },
    /// The device's driver, or the version of its ABI, is not supported.
    #[error(
        "open {device}: the driver {driver:?}, version {abi_version}, is not supported; supported are \
         {}",
        cause::drivers(known)
    )]
    Driver {
        /// The device's name.
        device: String,
        /// Its driver.
        driver: DriverId,
        /// The version of the driver's ABI.
        abi_version: u32,
        /// The supported drivers and the versions of their ABIs.
        known: Vec<(DriverId, u32)>,
    },
    /// The context is closed: by [`close`](crate::Context::close), by the removal of its device, or
    /// because this is a forked child.
    #[error(
        "{device}: the context is closed: by `close`, by the removal of its device, or because \
         this is a forked child"
    )]
    ContextClosed {
        /// The device's name.
        device: String,
    },
    /// The GIDs of a port could not be read.
    #[error(
        "read the GIDs of {device} port {port} in /sys/class/infiniband: {}: there is no such port \
         or index, or the device is gone",
        ErrnoName(*errno)
    )]
    Gids {
        /// The device's name.
        device: String,
        /// The port, from 1.
        port: u8,
        /// The error number of reading.
        errno: i32,
    },
    /// A completion of a request that is not outstanding.
    #[error("the device completed request {number:#x}, which is not outstanding")]
    Stray {
        /// The number of the request.
        number: u64,
    },
    /// A queue of the driver could not be mapped.
    #[error("map a queue of the driver: {}: {}", ErrnoName(*errno), io::Error::from_raw_os_error(*errno))]
    Map {
        /// The error number of `mmap(2)`.
        errno: i32,
    },
    /// Waiting failed.
    #[error("wait for the device: {}: {}", ErrnoName(*errno), cause::wait_cause(*errno))]
    Wait {
        /// The error number.
        errno: i32,
    },
    /// The device's verbs node could not be opened.
    #[error("open {}: {}: {cause}", path.display(), ErrnoName(*errno))]
    Open {
        /// The device node.
        path: PathBuf,
        /// The error number of `open(2)`.
        errno: i32,
        /// The likely cause, and what to do.
        cause: &'static str,
    },
    /// The node is not that of the device.
    #[error(
        "open {}: it is not the node of {device}: a node of another device, or one left from \
         before, has its name",
        path.display()
    )]
    OtherNode {
        /// The device node.
        path: PathBuf,
        /// The device's name.
        device: String,
    },
    /// Looking up the device failed.
    #[error(transparent)]
    Devices(#[from] rdmacm_core::Error),
    /// The kernel refused a command.
    #[error(transparent)]
    Command(Box<CommandError>),
    /// An argument is invalid, or the state does not allow the operation. Nothing has changed.
    #[error("{operation}: {reason}")]
    InvalidInput {
        /// The operation.
        operation: Box<Operation>,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The kernel's answer is invalid.
    #[error("{operation}: invalid response of the kernel to {command:?}: {what}")]
    Answer {
        /// The operation.
        operation: Box<Operation>,
        /// The kernel command.
        command: CommandNumber,
        /// Why the answer is invalid.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn open(node: &Path, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self::Open {
            path: node.to_owned(),
            errno,
            cause: cause::open_cause(errno),
        }
    }

    pub(crate) fn map(error: &io::Error) -> Self {
        // Without an errno, the offset is out of range for `mmap(2)`. EIO would mean that the
        // device is gone.
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        Self::Map { errno }
    }

    pub(crate) fn wait(errno: i32) -> Self {
        Self::Wait { errno }
    }

    /// Whether the context is closed, see [`ContextClosed`](Self::ContextClosed).
    #[must_use]
    pub fn is_context_closed(&self) -> bool {
        matches!(self, Self::ContextClosed { .. })
    }

    pub(crate) fn invalid(operation: Operation, reason: &'static str) -> Self {
        Self::InvalidInput {
            operation: Box::new(operation),
            reason,
        }
    }

    pub(crate) fn answer(operation: Operation, command: CommandNumber, what: &'static str) -> Self {
        Self::Answer {
            operation: Box::new(operation),
            command,
            what,
        }
    }

    pub(crate) fn command(operation: Operation, command: CommandNumber, error: &io::Error) -> Self {
        match CommandError::errno_of(error) {
            Ok(errno) => Self::Command(Box::new(CommandError::new(operation, command, errno))),
            Err(what) => Self::answer(operation, command, what),
        }
    }

    /// The kernel's error number, if the error has one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Gids { errno, .. }
            | Self::Open { errno, .. }
            | Self::Map { errno }
            | Self::Wait { errno } => Some(*errno),
            Self::Devices(error) => error.raw_os_error(),
            Self::Command(error) => Some(error.errno),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (&error, error.raw_os_error()) {
            (_, Some(errno)) => io::Error::from_raw_os_error(errno).kind(),
            (Error::InvalidInput { .. }, _) => io::ErrorKind::InvalidInput,
            (Error::Answer { .. } | Error::OtherNode { .. }, _) => io::ErrorKind::InvalidData,
            (Error::NoNode { .. }, _) => io::ErrorKind::NotFound,
            (Error::ContextClosed { .. }, _) => io::ErrorKind::NotConnected,
            (Error::Driver { .. }, _) => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
