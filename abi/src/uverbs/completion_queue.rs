//! Making and destroying completion queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

mod notify;
mod resize;

pub use notify::ReqNotifyCq;
pub use resize::{ResizeCq, ResizeCqResponse};

/// `struct ib_uverbs_create_cq`: makes a completion queue.
#[doc(alias = "ib_uverbs_create_cq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateCq {
    /// Where the kernel puts [`CreateCqResponse`]; filled in when the command is written.
    pub response: u64,
    /// What events of the queue carry back.
    pub user_handle: u64,
    /// How many completions it is to hold, at least 1.
    #[doc(alias = "cqe")]
    pub entries: u32,
    /// Which completion vector signals, from 0.
    #[doc(alias = "comp_vector")]
    pub completion_vector: u32,
    /// The descriptor of a completion channel, which the kernel looks up: one
    /// that [`CreateCompletionChannel`](super::CreateCompletionChannel) made
    /// in the same context, else EBADF. Negative is none.
    #[doc(alias = "comp_channel")]
    pub completion_channel: i32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl CreateCq {
    /// A request for a queue of `entries` completions that signals no channel.
    #[must_use]
    pub const fn new(entries: u32) -> Self {
        Self {
            response: 0,
            user_handle: 0,
            entries,
            completion_vector: 0,
            completion_channel: -1,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_create_cq_resp`.
#[doc(alias = "ib_uverbs_create_cq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateCqResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "cq_handle")]
    pub handle: u32,
    /// How many completions it holds, as many as requested or more.
    #[doc(alias = "cqe")]
    pub entries: u32,
}

/// `struct ib_uverbs_destroy_cq`: destroys a completion queue; EBUSY while a
/// queue pair uses it.
#[doc(alias = "ib_uverbs_destroy_cq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyCq {
    /// Where the kernel puts [`DestroyCqResponse`]; filled in when the command is written.
    pub response: u64,
    /// The completion queue.
    #[doc(alias = "cq_handle")]
    pub handle: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl DestroyCq {
    /// A request to destroy `handle`.
    #[must_use]
    pub const fn new(handle: u32) -> Self {
        Self {
            response: 0,
            handle,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_destroy_cq_resp`.
#[doc(alias = "ib_uverbs_destroy_cq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyCqResponse {
    /// How many events of the queue its channel has handed out.
    #[doc(alias = "comp_events_reported")]
    pub completion_events_reported: u32,
    /// How many of its asynchronous events have been handed out.
    pub async_events_reported: u32,
}
