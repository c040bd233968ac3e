//! A kernel that lives in the process: what the RDMA connection manager of Linux
//! answers, on a fabric a test describes, with a clock of its own. No device, no
//! privilege and no waiting is needed.
//!
//! A [`Fabric`] is a subnet with its subnet_admin, a [`Host`] a host on it,
//! and what a host [opens](Host::open) takes the place of
//! `/dev/infiniband/rdma_cm` under an
//! [`EventChannel`](rdmacm_core::EventChannel).
//!
//! ```
//! use std::time::Duration;
//! use rdmacm_core::{EventChannel, EventKind, Gid, IbAddr, IbService, PortSpace, ServiceRecord};
//! use rdmacm_sim::{Adapter, Fabric, Port};
//!
//! let gid: Gid = "fe80::1".parse()?;
//! let fabric = Fabric::new();
//! let host = fabric.host([Adapter::infiniband("mlx5_0").port(Port::new(gid))]);
//! fabric.register_service(ServiceRecord::new(0x7147, gid));
//!
//! let channel = EventChannel::options().ucma(host.open()?).open()?;
//! let id = channel.create_id(PortSpace::IB)?;
//! id.bind(IbAddr::new(gid))?;
//! id.resolve_ib_service(IbService::with_id(0x7147))?;
//! let event = channel.next_event(Duration::from_secs(3))?;
//! assert_eq!(event.kind(), EventKind::AddrInfoResolved);
//! assert_eq!(id.ib_service_records()?[0].gid, gid);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it knows
//! Native InfiniBand addresses from creating an id to a resolved route: `CREATE_ID`,
//! `DESTROY_ID`, `BIND`, `RESOLVE_ADDR`, `RESOLVE_ROUTE`, `RESOLVE_IB_SERVICE`,
//! `QUERY`, `GET_EVENT`, `WRITE_CM_EVENT` and the path by `SET_OPTION`, with the
//! states and error numbers of the kernel's `ucma.c` and `cma.c` (Linux 7.3). Hosts
//! have no IP addresses, and whoever asks may use any port. Any other command and option is answered as the kernel
//! answers one that it has no function for: `ENOSYS`, and `EINVAL` beyond the end of
//! its table.
//!
//! # Time
//! The clock stands still while anything can happen, and moves when somebody
//! waits: straight to what happens next, or to the end of the wait. So a test of
//! a deadline takes no time, and goes the same way each time. A thread that waits
//! does not know of others that are busy: where several wait and work at once, a
//! deadline may pass earlier than it would. A wait without an end for what never
//! happens never ends, as with the kernel.

mod adapter;
mod address;
mod clock;
mod cm;
mod command;
mod destroy;
mod device;
mod devices;
mod event_queue;
mod fabric;
mod host;
mod host_state;
mod id;
mod iwarp;
mod kernel_version;
mod multicast;
mod network;
mod random;
mod readiness;
mod sim_state;
mod subnet;
mod timer;
mod ucma_file;
mod waits;

pub use adapter::{Adapter, Port};
pub use fabric::{Fabric, SubnetAdmin};
pub use host::Host;
pub use kernel_version::KernelVersion;
pub use network::MessageKind;
