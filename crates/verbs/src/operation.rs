//! What a caller asked for, as error messages say it.

use std::fmt;

use rdmacm_core::{QpAttrMask, QpState, QpType};

/// What was asked for when an error happened, with the values that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`Context::open`](crate::Context::open).
    OpenContext,
    /// [`Context::port`](crate::Context::port).
    QueryPort(u8),
    /// [`Context::create_protection_domain`](crate::Context::create_protection_domain).
    CreateProtectionDomain,
    /// [`Context::create_completion_queue`](crate::Context::create_completion_queue).
    CreateCompletionQueue {
        /// How many completions it was to hold.
        entries: u32,
    },
    /// [`QpOptions::create`](crate::QpOptions::create).
    CreateQueuePair(QpType),
    /// [`QueuePair::modify`](crate::QueuePair::modify).
    ModifyQueuePair {
        /// The queue pair's number.
        number: u32,
        /// The state it was to move to, if to any.
        state: Option<QpState>,
        /// What was to change.
        mask: QpAttrMask,
    },
    /// [`QueuePair::query`](crate::QueuePair::query) and its kin.
    QueryQueuePair {
        /// The queue pair's number.
        number: u32,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenContext => f.write_str("open the device"),
            Self::QueryPort(number) => write!(f, "ask about port {number}"),
            Self::CreateProtectionDomain => f.write_str("create a protection domain"),
            Self::CreateCompletionQueue { entries } => {
                write!(f, "create a completion queue of {entries}")
            }
            Self::CreateQueuePair(qp_type) => write!(f, "create a queue pair of type {qp_type:?}"),
            Self::ModifyQueuePair {
                number,
                state: Some(state),
                mask,
            } => write!(f, "move queue pair {number:#x} to {state:?} ({mask:?})"),
            Self::ModifyQueuePair { number, mask, .. } => {
                write!(f, "modify queue pair {number:#x} ({mask:?})")
            }
            Self::QueryQueuePair { number } => write!(f, "ask about queue pair {number:#x}"),
        }
    }
}
