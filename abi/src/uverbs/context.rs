//! Making an open file a context.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct ib_uverbs_get_context`: makes an open file a context, once; every
/// other command before is EINVAL.
#[doc(alias = "ib_uverbs_get_context")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct GetContext {
    /// Where the kernel puts [`GetContextResponse`]; filled in when the command is written.
    pub response: u64,
}

/// `struct ib_uverbs_get_context_resp`.
#[doc(alias = "ib_uverbs_get_context_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct GetContextResponse {
    /// A new descriptor, closed on exec, where asynchronous events of the
    /// context's objects are read.
    pub async_fd: u32,
    /// How many completion vectors there are, at least 1.
    #[doc(alias = "num_comp_vectors")]
    pub completion_vectors: u32,
}
