//! Event channels, ids and commands of the Linux RDMA connection manager, without C:
//! every command is a `write(2)` to `/dev/infiniband/rdma_cm`.
//!
//! An [`EventChannel`] is an open file of that device. A [`CmId`] created on it is a
//! connection, a listener or a datagram service. Its methods are the commands of the
//! kernel; a command that takes time ends with an [`Event`] on the channel. Every wait
//! for one event takes a [`Deadline`]; the commands that block in the kernel say so. This crate is for event loops and for authors of RDMA stacks;
//! applications use the crate `rdmacm`.
//!
//! * Dropping a [`CmId`] destroys the id. This does not wait for readers of events, but the kernel
//!   takes up to 10 s to destroy an iWARP id during its MPA handshake, and up to 2 s to destroy one
//!   that queries the subnet administrator. Events are owned values: they hold an [`IdHandle`],
//!   which keeps nothing alive, and need no acknowledgement.
//! * Every error names the operation, the kernel's command, the error number and, if it is
//!   known, the likely cause.
//! * Addresses, GIDs and path records are queried when the caller reads them, and cached
//!   until a command or an event may have changed them.
//! * Two traits replace the kernel in tests: [`UcmaFile`](ucma::UcmaFile), with a clock of
//!   its own, and [`RdmaDevices`].
//!
//! Tested on Linux 6.1 and newer. Items that need a newer kernel say so. A kernel older than 3.12
//! has only the commands for IP addresses: a channel detects that with a probe, which
//! [`AddressAbi::IpOnly`] avoids.
//!
//! # Resolving an address
//! ```no_run
//! use std::time::Duration;
//! use rdmacm_core::{CmAddr, EventChannel, EventKind, PortSpace};
//!
//! let channel = EventChannel::open()?;
//! let id = channel.create_id(PortSpace::TCP)?;
//! let timeout = Duration::from_secs(2);
//! id.resolve_addr(None, CmAddr::from(([10, 1, 0, 7], 7471)), timeout)?;
//! let event = channel.next_event(timeout)?;
//! if event.kind() == EventKind::AddrResolved {
//!     println!("{:?}", event.id().addresses()?);
//! }
//! # Ok::<(), rdmacm_core::Error>(())
//! ```

mod address;
mod address_abi;
mod channel;
mod channel_state;
mod command_support;
mod conn_param;
mod deadline;
mod errno;
mod error;
mod event;
mod event_failure;
mod event_info;
mod event_kind;
mod gid;
mod guid;
mod id;
mod id_addresses;
mod id_handle;
mod id_queue_pair;
mod id_state;
mod multicast;
mod netlink;
mod notification;
mod operation;
mod path;
mod private_data;
mod queue_pair;
mod rdma_devices;
mod resolution;
mod service;
mod service_resolution;
mod token;
pub mod ucma;

pub use address::{CmAddr, Family, IbAddr, ParseAddrError, TryFromAddrError};
pub use address_abi::AddressAbi;
pub use channel::{ChannelOptions, EventChannel, Events, Pending, Waker, default_qp_type};
pub use conn_param::{ConnParam, RDMA_UDP_QKEY, UdParam};
pub use deadline::Deadline;
pub use errno::Name as ErrnoName;
pub use error::{CommandError, Error, LikelyCause, QueuePairError, Result};
pub use event::Event;
pub use event_failure::EventFailure;
pub use event_info::{ConnInfo, UdInfo};
pub use event_kind::EventKind;
pub use gid::Gid;
pub use guid::Guid;
pub use id::CmId;
pub use id_addresses::{Addresses, Gids, IdRoute};
pub use id_handle::IdHandle;
pub use id_queue_pair::{RequestAttrs, WithQueuePair};
pub use multicast::MulticastGroup;
pub use notification::Notification;
pub use operation::Operation;
pub use path::{PathData, PathRecord, PathRecords};
pub use private_data::PrivateData;
pub use queue_pair::{DepthLimits, QueuePair};
pub use rdma_devices::{
    DeviceId, DeviceLookup, InfinibandPort, Netdev, PhysicalState, Port, PortState, RdmaDevice,
    RdmaDevices, SystemDevices, Transport, UverbsNode,
};
pub use rdmacm_abi::uverbs::DriverId;
pub use rdmacm_abi::{
    AccessFlags, AhAttr, CommandNumber, Ece, GlobalRoute, IbService, JoinFlags, PathFlags, PathMtu,
    PortSpace, QpAttr, QpAttrMask, QpState, QpType, RejectReason, SidrStatus,
};
pub use resolution::PendingResolution;
pub use service::{ServiceData, ServiceName, ServiceNameError, ServiceRecord};
pub use service_resolution::IbServiceResolution;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
