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
    /// [`CompletionQueue::resize`](crate::CompletionQueue::resize).
    ResizeCompletionQueue {
        /// How many completions it was to hold.
        entries: u32,
    },
    /// [`Context::create_completion_channel`](crate::Context::create_completion_channel).
    CreateCompletionChannel,
    /// [`CompletionQueue::arm`](crate::CompletionQueue::arm).
    Arm,
    /// [`CompletionQueue::next`](crate::CompletionQueue::next).
    Wait,
    /// Registering memory, see [`ProtectionDomain`](crate::ProtectionDomain).
    Register {
        /// How many bytes.
        length: usize,
    },
    /// [`RemoteAccessRegion::change_access`](crate::RemoteAccessRegion::change_access).
    ChangeAccess,
    /// Naming a part of memory: [`Buffer::part`](crate::Buffer::part) and
    /// [`RemoteAccessRegion::part`](crate::RemoteAccessRegion::part).
    TakePart,
    /// [`ProtectionDomain::create_address_handle`](crate::ProtectionDomain::create_address_handle).
    CreateAddressHandle,
    /// [`SrqOptions::create`](crate::SrqOptions::create).
    CreateSharedReceiveQueue,
    /// [`SharedReceiveQueue`](crate::SharedReceiveQueue)'s questions and changes.
    SharedReceiveQueue,
    /// Posting a send request, see [`QueuePair::post_send`](crate::QueuePair::post_send).
    Send,
    /// Posting a receive request, see
    /// [`QueuePair::post_receive`](crate::QueuePair::post_receive).
    Receive,
    /// [`QueuePair::attach`](crate::QueuePair::attach) and
    /// [`detach`](crate::QueuePair::detach).
    Multicast {
        /// The queue pair's number.
        number: u32,
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
            Self::ResizeCompletionQueue { entries } => {
                write!(f, "resize a completion queue to {entries}")
            }
            Self::CreateCompletionChannel => f.write_str("create a completion channel"),
            Self::Arm => f.write_str("arm a completion queue"),
            Self::Wait => f.write_str("wait for a completion"),
            Self::Register { length } => write!(f, "register {length} bytes of memory"),
            Self::ChangeAccess => f.write_str("change the access to memory"),
            Self::TakePart => f.write_str("take a part of memory"),
            Self::CreateAddressHandle => f.write_str("create an address handle"),
            Self::CreateSharedReceiveQueue => f.write_str("create a shared receive queue"),
            Self::SharedReceiveQueue => f.write_str("ask or change a shared receive queue"),
            Self::Send => f.write_str("post a send request"),
            Self::Receive => f.write_str("post a receive request"),
            Self::Multicast { number } => {
                write!(
                    f,
                    "attach queue pair {number:#x} to a multicast group, or detach it"
                )
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
