//! Operations, as error texts name them.

use std::fmt;

use rdmacm_core::{QpAttrMask, QpState, QpType};

/// The operation of an error, with its arguments.
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
        /// The requested number of completions.
        entries: u32,
    },
    /// [`CompletionQueue::resize`](crate::CompletionQueue::resize).
    ResizeCompletionQueue {
        /// The requested number of completions.
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
        /// The length in bytes.
        length: usize,
    },
    /// [`RemoteAccessRegion::change_access`](crate::RemoteAccessRegion::change_access).
    ChangeAccess,
    /// Taking a slice of memory: [`Buffer::slice`](crate::Buffer::slice) and
    /// [`RemoteAccessRegion::slice`](crate::RemoteAccessRegion::slice).
    Slice,
    /// [`ProtectionDomain::create_address_handle`](crate::ProtectionDomain::create_address_handle).
    CreateAddressHandle,
    /// [`SrqOptions::create`](crate::SrqOptions::create).
    CreateSharedReceiveQueue,
    /// Queries and modifications of a [`SharedReceiveQueue`](crate::SharedReceiveQueue).
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
        /// The requested state, if any.
        state: Option<QpState>,
        /// The attributes to modify.
        mask: QpAttrMask,
    },
    /// [`QueuePair::query`](crate::QueuePair::query) and similar methods.
    QueryQueuePair {
        /// The queue pair's number.
        number: u32,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenContext => f.write_str("open the device"),
            Self::QueryPort(number) => write!(f, "query port {number}"),
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
            Self::Slice => f.write_str("slice memory"),
            Self::CreateAddressHandle => f.write_str("create an address handle"),
            Self::CreateSharedReceiveQueue => f.write_str("create a shared receive queue"),
            Self::SharedReceiveQueue => f.write_str("query or modify a shared receive queue"),
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
            Self::QueryQueuePair { number } => write!(f, "query queue pair {number:#x}"),
        }
    }
}
