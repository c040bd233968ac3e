//! Completion channels, on which completion queues report completions.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct ib_uverbs_create_comp_channel`: makes a completion channel.
#[doc(alias = "ib_uverbs_create_comp_channel")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct CreateCompletionChannel {
    /// Where the kernel puts [`CreateCompletionChannelResponse`]; filled in by
    /// who writes.
    pub response: u64,
}

/// `struct ib_uverbs_create_comp_channel_resp`.
#[doc(alias = "ib_uverbs_create_comp_channel_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateCompletionChannelResponse {
    /// A new descriptor, closed on exec, where [`CompletionEvent`]s are read.
    pub fd: u32,
}

/// `struct ib_uverbs_comp_event_desc`: what is read from a completion channel,
/// several at a time if there is space. EIO once the device is gone.
#[doc(alias = "ib_uverbs_comp_event_desc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CompletionEvent {
    /// The user handle of the completion queue that was armed and has a
    /// completion.
    #[doc(alias = "cq_handle")]
    pub user_handle: u64,
}
