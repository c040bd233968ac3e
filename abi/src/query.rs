//! Queries.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

mod response;

pub use response::{
    QueryAddrResponse, QueryIbServiceResponse, QueryPathResponse, QueryRouteResponse,
};

numbers! {
    /// What QUERY returns; others are ENOSYS.
    pub struct QueryOption(u32) in kernel "rdma/rdma_user_cm.h" {
        /// Addresses and device: [`QueryAddr`].
        ADDR = 0 => "RDMA_USER_CM_QUERY_ADDR",
        /// Path records: [`QueryPath`].
        PATH = 1 => "RDMA_USER_CM_QUERY_PATH",
        /// GIDs: [`QueryGid`].
        GID = 2 => "RDMA_USER_CM_QUERY_GID",
        /// Services that were found: [`QueryIbService`]. Needs Linux 6.18
        /// or newer.
        IB_SERVICE = 3 => "RDMA_USER_CM_QUERY_IB_SERVICE" since (7, 2),
    }
}

/// `struct rdma_ucm_query`: queries an id in any state.
///
/// The answer's shape depends on the option, so the commands are the types
/// made of this one: [`QueryAddr`], [`QueryPath`], [`QueryGid`],
/// [`QueryIbService`] and, for `QUERY_ROUTE`, [`QueryRoute`].
#[doc(alias = "rdma_ucm_query")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Query {
    /// Where the kernel puts its answer; filled in when the command is written.
    pub response: u64,
    /// The id.
    pub id: u32,
    /// What to return.
    pub option: QueryOption,
}

impl Query {
    const fn new(id: u32, option: QueryOption) -> Self {
        Self {
            response: 0,
            id,
            option,
        }
    }
}

macro_rules! queries {
    ($(
        $(#[$meta:meta])*
        $type:ident $(<const $n:ident: usize>)? = $option:ident;
    )+) => {$(
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
        )]
        #[repr(transparent)]
        pub struct $type $(<const $n: usize>)? (Query);

        impl $(<const $n: usize>)? $type $(<$n>)? {
            /// A query of `id`.
            #[must_use]
            pub const fn new(id: u32) -> Self {
                Self(Query::new(id, QueryOption::$option))
            }

            /// The request as the kernel declares it.
            #[must_use]
            pub const fn query(&self) -> &Query {
                &self.0
            }
        }
    )+};
}

queries! {
    /// Queries addresses and device. Answer: [`QueryAddrResponse`].
    #[doc(alias = "RDMA_USER_CM_QUERY_ADDR")]
    QueryAddr = ADDR;
    /// Queries GIDs and device. Answer: [`QueryAddrResponse`] with
    /// [`SockaddrIb`](crate::SockaddrIb)s.
    #[doc(alias = "RDMA_USER_CM_QUERY_GID")]
    QueryGid = GID;
    /// Queries up to `N` path records. Answer: [`QueryPathResponse`].
    #[doc(alias = "RDMA_USER_CM_QUERY_PATH")]
    QueryPath<const N: usize> = PATH;
    /// Queries up to `N` services; ENODATA if none was looked for. `N` must
    /// not be 0, to which Linux 7.2 answers success and writes nothing. Answer:
    /// [`QueryIbServiceResponse`]. Needs Linux 6.18 or newer.
    #[doc(alias = "RDMA_USER_CM_QUERY_IB_SERVICE")]
    QueryIbService<const N: usize> = IB_SERVICE;
    /// Queries IP addresses, device and paths, as the first kernels could;
    /// `QUERY_ROUTE` does not look at the option. Answer:
    /// [`QueryRouteResponse`].
    #[doc(alias = "RDMA_USER_CM_CMD_QUERY_ROUTE")]
    QueryRoute = ADDR;
}
