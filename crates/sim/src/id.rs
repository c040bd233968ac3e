//! Ids and their states.

use std::net::IpAddr;

use rdmacm_abi::{Ece, PathRecord, PortSpace, QpType, ServiceRecord};
use rdmacm_core::Gid;

use crate::address::Address;
use crate::cm::IbConnection;
use crate::iwarp::IwConnection;

/// The states of the kernel's `cma_priv.h`.
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
    Connect,
    Disconnect,
    Listen,
    DeviceRemoval,
}

/// The port an id is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// The device's index on the host, from 0.
    pub(crate) device: usize,
    /// The number of its port, from 1.
    pub(crate) port: u8,
}

/// Names an id for good: its number may be another id's later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdKey {
    pub(crate) host: usize,
    pub(crate) number: u32,
    pub(crate) serial: u64,
}

/// The connection manager's object of an id, `cm_id` of the kernel's
/// `rdma_id_private`.
#[derive(Debug)]
pub(crate) enum CmObject {
    None,
    /// That of a listener on one device.
    Listener,
    /// That of InfiniBand and RoCE, `cm.c`.
    Ib(Box<IbConnection>),
    /// That of iWARP, `iwcm.c`.
    Iw(Box<IwConnection>),
}

/// What `SET_OPTION` sets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdOptions {
    pub(crate) tos: Option<u8>,
    pub(crate) ack_timeout: Option<u8>,
    pub(crate) reuse_address: bool,
    pub(crate) af_only: bool,
    /// Whether the program has set the last one.
    pub(crate) is_af_only_set: bool,
}

/// What the kernel stores of an id.
#[derive(Debug)]
pub(crate) struct Id {
    /// Distinguishes it from another id that has its number later.
    pub(crate) serial: u64,
    pub(crate) uid: u64,
    /// The open file it belongs to.
    pub(crate) file: u64,
    pub(crate) port_space: PortSpace,
    pub(crate) qp_type: QpType,
    pub(crate) state: State,
    pub(crate) source: Option<Address>,
    pub(crate) destination: Option<Address>,
    /// The port space and port it is bound to.
    pub(crate) bound: Option<(PortSpace, u16)>,
    pub(crate) attached: Option<Attached>,
    /// Whether it was bound to an interface without an RDMA device, for good.
    pub(crate) is_on_non_rdma_interface: bool,
    /// Partition and GIDs of its port and its peer's, `struct rdma_dev_addr`.
    pub(crate) pkey: u16,
    pub(crate) source_gid: Gid,
    pub(crate) destination_gid: Gid,
    pub(crate) path: Option<PathRecord>,
    pub(crate) services: Option<Vec<ServiceRecord>>,
    pub(crate) options: IdOptions,
    /// How many more connect requests may be queued.
    pub(crate) backlog: u32,
    pub(crate) qp_number: u32,
    pub(crate) srq: u8,
    pub(crate) qkey: u32,
    /// The packet sequence number its peer begins to send with.
    pub(crate) psn: u32,
    pub(crate) ece: Ece,
    pub(crate) cm: CmObject,
    pub(crate) is_destroying: bool,
    pub(crate) events_reported: u32,
}

impl Id {
    pub(crate) fn new(serial: u64, uid: u64, file: u64, kind: (PortSpace, QpType)) -> Self {
        Self {
            serial,
            uid,
            file,
            port_space: kind.0,
            qp_type: kind.1,
            state: State::Idle,
            source: None,
            destination: None,
            bound: None,
            attached: None,
            is_on_non_rdma_interface: false,
            pkey: 0,
            source_gid: Gid::UNSPECIFIED,
            destination_gid: Gid::UNSPECIFIED,
            path: None,
            services: None,
            options: IdOptions::default(),
            backlog: 0,
            qp_number: 0,
            srq: 0,
            qkey: 0,
            psn: 0,
            ece: Ece {
                vendor_id: 0,
                options: 0,
            },
            cm: CmObject::None,
            is_destroying: false,
            events_reported: 0,
        }
    }

    /// The service id that an address stands for (`rdma_get_service_id`).
    pub(crate) fn service_id(&self, address: Option<Address>) -> u64 {
        match address {
            Some(Address::Ib(address)) => address.service_id.get(),
            other => {
                let port = other.map_or(0, |address| address.port());
                u64::from(self.port_space.number()) << 16 | u64::from(port)
            }
        }
    }

    pub(crate) fn is_datagram(&self) -> bool {
        self.qp_type == QpType::UD
    }

    /// Whether its own address is one of InfiniBand.
    pub(crate) fn is_native(&self) -> bool {
        matches!(self.source, Some(Address::Ib(_)))
    }

    pub(crate) fn source_ip(&self) -> Option<IpAddr> {
        self.source.and_then(|source| source.ip())
    }

    pub(crate) fn destination_ip(&self) -> Option<IpAddr> {
        self.destination.and_then(|destination| destination.ip())
    }

    pub(crate) fn ib(&mut self) -> Option<&mut IbConnection> {
        match &mut self.cm {
            CmObject::Ib(connection) => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn iw(&mut self) -> Option<&mut IwConnection> {
        match &mut self.cm {
            CmObject::Iw(connection) => Some(connection),
            _ => None,
        }
    }
}
