//! User events.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute_ref};

use crate::{ConnParam, EventNumber, Reserved, UdParam};

/// `struct rdma_ucm_write_cm_event`: queues an event to an id's own file. Needs
/// Linux 6.18 or newer.
#[doc(alias = "rdma_ucm_write_cm_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct WriteCmEvent {
    /// The id; its uid must not be 0.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// [`EventNumber::USER`] or [`EventNumber::INTERNAL`]; others are EINVAL.
    pub event: EventNumber,
    /// The event's status. Declared unsigned, signed in practice.
    #[doc(alias = "status")]
    pub raw_status: u32,
    /// The event's parameters.
    pub param: WriteEventParam,
}

impl WriteCmEvent {
    /// A request for an event that carries `status` and `arg`.
    #[must_use]
    pub fn new(id: u32, event: EventNumber, status: i32, arg: u64) -> Self {
        Self {
            id,
            reserved: Reserved::ZERO,
            event,
            raw_status: u32::from_ne_bytes(status.to_ne_bytes()),
            param: WriteEventParam::from_arg(arg),
        }
    }

    /// The event's status.
    #[must_use]
    pub const fn status(&self) -> i32 {
        i32::from_ne_bytes(self.raw_status.to_ne_bytes())
    }
}

/// The parameters of an event to write: a C union, of which the kernel reads
/// [`arg`](Self::arg) only.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct WriteEventParam {
    // Long words: unlike that of an event, this union is 8-aligned.
    words: [u64; 38],
}

/// The union's first view and what the longest leaves after it.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct ConnView {
    conn: ConnParam,
    rest: [u32; 8],
}

impl WriteEventParam {
    /// A number that the event carries.
    #[must_use]
    pub const fn from_arg(arg: u64) -> Self {
        let mut words = [0; 38];
        words[0] = arg;
        Self { words }
    }

    /// The number that the event carries.
    #[must_use]
    pub const fn arg(&self) -> u64 {
        self.words[0]
    }

    /// As parameters of a connected id.
    #[must_use]
    pub const fn conn(&self) -> &ConnParam {
        let view: &ConnView = transmute_ref!(&self.words);
        &view.conn
    }

    /// As parameters of a datagram id.
    #[must_use]
    pub const fn ud(&self) -> &UdParam {
        transmute_ref!(&self.words)
    }
}

/// The kernel reads the number only, so that is what is shown.
impl core::fmt::Debug for WriteEventParam {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WriteEventParam")
            .field("arg", &self.arg())
            .finish_non_exhaustive()
    }
}
