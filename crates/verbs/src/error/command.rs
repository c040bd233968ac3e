//! A command that the kernel refused.

use std::fmt;
use std::io;

use rdmacm_abi::uverbs::CommandNumber;
use rdmacm_core::ErrnoName;

use super::cause::command_cause;
use crate::operation::Operation;

/// A command that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandError {
    /// What was asked for.
    pub operation: Operation,
    /// The kernel command that failed.
    pub command: CommandNumber,
    /// The kernel's error number, positive.
    pub errno: i32,
}

impl CommandError {
    /// The likely cause in words, where the error number tells one.
    #[must_use]
    pub fn cause(&self) -> Option<&'static str> {
        command_cause(&self.operation, self.errno)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, command) = (&self.operation, self.command);
        write!(f, "{operation} ({command:?}): {}", ErrnoName(self.errno))?;
        match self.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => write!(f, ": {}", io::Error::from_raw_os_error(self.errno)),
        }
    }
}

impl std::error::Error for CommandError {}
