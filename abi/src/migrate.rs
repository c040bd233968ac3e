//! Moving an id from one open file to another.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct rdma_ucm_migrate_id`: written to the **new** file, moves an id and
/// its unread events there.
///
/// A thread that already waits on the new file is not woken.
#[doc(alias = "rdma_ucm_migrate_id")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MigrateId {
    /// Where the kernel puts [`MigrateIdResponse`]; filled in when the command is written.
    pub response: u64,
    /// The id.
    pub id: u32,
    /// The descriptor of the file the id is on now; filled in when the command is written.
    pub fd: u32,
}

impl MigrateId {
    /// A request to move `id`.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self {
            response: 0,
            id,
            // No descriptor has this number, so a forgotten one is ENOENT.
            fd: u32::MAX,
        }
    }
}

/// `struct rdma_ucm_migrate_resp`.
#[doc(alias = "rdma_ucm_migrate_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MigrateIdResponse {
    /// How many events of the id `GET_EVENT` has handed out on the old file.
    pub events_reported: u32,
}
