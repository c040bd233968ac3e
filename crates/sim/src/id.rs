//! Ids and their states.

use rdmacm_abi::{PathRecord, PortSpace, ServiceRecord};
use rdmacm_core::Gid;

use crate::address::Address;

/// The states of the kernel's `cma_priv.h` on the way to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    AddrBound,
    AddrQuery,
    AddrResolved,
    AddrInfoQuery,
    AddrInfoResolved,
    RouteQuery,
    RouteResolved,
}

/// The port an id is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Which of the host's adapters, from 0.
    pub(crate) adapter: usize,
    /// Which of its ports, from 1.
    pub(crate) port: u8,
}

/// What the kernel keeps of an id.
#[derive(Debug)]
pub(crate) struct Id {
    /// Tells it from another that has its number later.
    pub(crate) serial: u64,
    pub(crate) uid: u64,
    /// The open file it belongs to.
    pub(crate) file: u64,
    pub(crate) port_space: PortSpace,
    pub(crate) state: State,
    pub(crate) source: Option<Address>,
    pub(crate) destination: Option<Address>,
    /// The port space and port it is bound to.
    pub(crate) bound: Option<(PortSpace, u16)>,
    pub(crate) attached: Option<Attached>,
    /// Partition and GIDs of its port and its peer's, `struct rdma_dev_addr`.
    pub(crate) pkey: u16,
    pub(crate) source_gid: Gid,
    pub(crate) destination_gid: Gid,
    pub(crate) path: Option<PathRecord>,
    pub(crate) services: Option<Vec<ServiceRecord>>,
    pub(crate) events_reported: u32,
}

impl Id {
    pub(crate) fn new(serial: u64, uid: u64, file: u64, port_space: PortSpace) -> Self {
        Self {
            serial,
            uid,
            file,
            port_space,
            state: State::Idle,
            source: None,
            destination: None,
            bound: None,
            attached: None,
            pkey: 0,
            source_gid: Gid::UNSPECIFIED,
            destination_gid: Gid::UNSPECIFIED,
            path: None,
            services: None,
            events_reported: 0,
        }
    }

    /// The service id an address means to this id (`rdma_get_service_id`).
    pub(crate) fn service_id(&self, address: Option<Address>) -> u64 {
        match address {
            Some(Address::Ib(address)) => address.service_id.get(),
            other => {
                let port = other.map_or(0, |address| address.port());
                u64::from(self.port_space.number()) << 16 | u64::from(port)
            }
        }
    }
}
