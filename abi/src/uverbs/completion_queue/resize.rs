//! Changing how many completions a queue holds.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct ib_uverbs_resize_cq`: changes how many completions a queue holds;
/// EINVAL if there are more in it. EOPNOTSUPP from siw.
#[doc(alias = "ib_uverbs_resize_cq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResizeCq {
    /// Where the kernel puts [`ResizeCqResponse`]; filled in when the command is written.
    pub response: u64,
    /// The completion queue.
    #[doc(alias = "cq_handle")]
    pub handle: u32,
    /// How many completions it is to hold, at least 1.
    #[doc(alias = "cqe")]
    pub entries: u32,
}

impl ResizeCq {
    /// A request for `handle` to hold `entries` completions.
    #[must_use]
    pub const fn new(handle: u32, entries: u32) -> Self {
        Self {
            response: 0,
            handle,
            entries,
        }
    }
}

/// `struct ib_uverbs_resize_cq_resp`.
#[doc(alias = "ib_uverbs_resize_cq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResizeCqResponse {
    /// How many completions it holds, as many as requested or more.
    #[doc(alias = "cqe")]
    pub entries: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}
