//! Commands that the kernel refused.

use rdmacm_abi::uverbs::CommandNumber;
use rdmacm_core::LikelyCause;

use super::cause::command_cause;
use crate::operation::Operation;

/// A verbs command that the kernel refused.
pub type CommandError = rdmacm_core::CommandError<Operation, CommandNumber>;

impl LikelyCause for Operation {
    fn likely_cause(&self, errno: i32) -> Option<&'static str> {
        command_cause(self, errno)
    }
}
