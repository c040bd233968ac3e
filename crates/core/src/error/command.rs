//! Commands that the kernel refused.

use std::fmt;
use std::io;

use rdmacm_abi::CommandNumber;

use super::cause::command_cause;
use crate::errno::Name;
use crate::operation::Operation;

/// A command that the kernel refused.
///
/// The type parameters are the operation and the number of the command: those of the
/// connection manager, unless another interface of the kernel uses them, as
/// `rdmacm-verbs` does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandError<O = Operation, N = CommandNumber> {
    /// The operation that the caller requested.
    pub operation: O,
    /// The kernel command that failed.
    pub command: N,
    /// The kernel's error number, positive.
    pub errno: i32,
}

/// An operation that knows the likely causes of its failures.
pub trait LikelyCause {
    /// The likely cause of this error number in words, if it is known.
    fn likely_cause(&self, errno: i32) -> Option<&'static str>;
}

impl LikelyCause for Operation {
    fn likely_cause(&self, errno: i32) -> Option<&'static str> {
        command_cause(self, errno)
    }
}

impl<O, N> CommandError<O, N> {
    /// The error of a command.
    pub fn new(operation: O, command: N, errno: i32) -> Self {
        Self {
            operation,
            command,
            errno,
        }
    }

    /// The error number with which the `write(2)` of a command failed.
    ///
    /// # Errors
    /// What is wrong with the error, if it has no number.
    pub fn errno_of(error: &io::Error) -> Result<i32, &'static str> {
        match error.raw_os_error() {
            Some(errno) => Ok(errno),
            None if error.kind() == io::ErrorKind::WriteZero => {
                Err("it took only a part of the command")
            }
            None => Err("an error without a number"),
        }
    }
}

impl<O: LikelyCause, N> CommandError<O, N> {
    /// The likely cause in words, if it is known.
    #[must_use]
    pub fn cause(&self) -> Option<&'static str> {
        self.operation.likely_cause(self.errno)
    }
}

impl<O: LikelyCause + fmt::Display, N: fmt::Debug> fmt::Display for CommandError<O, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, command) = (&self.operation, &self.command);
        write!(f, "{operation} ({command:?}): {}", Name(self.errno))?;
        match self.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => write!(f, ": {}", io::Error::from_raw_os_error(self.errno)),
        }
    }
}

impl<O: LikelyCause + fmt::Display + fmt::Debug, N: fmt::Debug> std::error::Error
    for CommandError<O, N>
{
}
