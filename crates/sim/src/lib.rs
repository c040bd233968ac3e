//! A simulated kernel for tests: what the RDMA connection manager of Linux answers to
//! the hosts of a [`Fabric`], which has its own clock. A test needs no RDMA device and
//! no privilege, and does not wait.
//!
//! A [`Host`] is a machine with RDMA devices ([`Adapter`]).
//! [`Host::channel`] opens an [`EventChannel`](rdmacm_core::EventChannel) on it, and
//! [`Host::open`] the file below one, in place of `/dev/infiniband/rdma_cm`.
//! [`DeviceSource::open`](rdmacm_verbs::DeviceSource::open) opens one of its RoCE or iWARP
//! devices, in place of `/dev/infiniband/uverbsN`.
//!
//! ```
//! use std::time::Duration;
//! use rdmacm_core::{EventKind, PortSpace};
//! use rdmacm_sim::{Adapter, Fabric};
//!
//! let fabric = Fabric::new();
//! let client = fabric.host([Adapter::roce("rxe0").address([10, 1, 0, 7])]);
//! let server = fabric.host([Adapter::roce("rxe0").address([10, 1, 0, 8])]);
//!
//! let channel = client.channel()?;
//! let id = channel.create_id(PortSpace::TCP)?;
//! id.resolve_addr(None, ([10, 1, 0, 8], 7471), Duration::from_secs(1))?;
//! assert_eq!(channel.next_event(None)?.kind(), EventKind::AddrResolved);
//! assert_eq!(id.local_addr()?.map(|address| address.with_port(0)),
//!     Some(([10, 1, 0, 7], 0).into()));
//!
//! server.set_link_up("rxe0", false);
//! let id = channel.create_id(PortSpace::TCP)?;
//! id.resolve_addr(None, ([10, 1, 0, 8], 7471), Duration::from_secs(60))?;
//! let event = channel.next_event(None)?;
//! assert_eq!(event.failure().and_then(|failure| failure.raw_os_error()), Some(110));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is simulated
//! Every command of the device, in the states and with the error numbers of the
//! kernel's `ucma.c`, `cma.c`, `cm.c` and `iwcm.c` and, on iWARP, of the driver siw;
//! of Linux 7.3 or 6.1 ([`KernelVersion`]).
//!
//! - RoCE and iWARP devices have IPv4 and IPv6 addresses. A host has routes to every
//!   address of a family of which it has one itself, except those that a test removes.
//! - InfiniBand adapters have GIDs, and the subnet administrator resolves paths and
//!   services ([`SubnetAdmin`]).
//! - Connections exchange the messages of their transport, with the kernel's retransmissions. On
//!   iWARP, `CONNECT` blocks for the TCP handshake; disconnecting and destroying an id block while
//!   the answer to the handshake is awaited. Destroying an id also blocks while it queries the subnet
//!   administrator for a service. While `CONNECT` blocks, other commands on the id are executed at
//!   once; the kernel would make them wait.
//! - A connection over RoCE or InfiniBand takes any number as that of its queue pair. Live
//!   connections of a host to the same peer need different numbers: one that is used again
//!   is a stale connection. A connection over iWARP needs a queue pair of the device that
//!   has not been connected.
//! - RoCE and iWARP devices have reliable connected queue pairs, in the formats of the drivers
//!   rxe and siw, that carry messages, reads, writes and, on RoCE, atomics: a [`Host`] is a
//!   [`DeviceSource`](rdmacm_verbs::DeviceSource). Those of iWARP need an x86 or x86-64
//!   processor.
//!
//! Ports below 1024 need no privilege. The attributes of a queue pair are the same after its path
//! has migrated.
//!
//! A forked child changes nothing of its parent's. Its copy of a fabric has no hosts, all commands
//! fail with `EACCES`, as with the kernel, and a wait ends at its deadline. It may create a fabric of
//! its own. If another thread of the parent used the fabric at the fork, the copy's clock may read
//! another time.
//!
//! # Failures
//! [`Host`] has the failures of a machine: no link, no response, delay, lost messages
//! of one [`MessageKind`] (on iWARP only of TCP's handshake), a removed device, commands
//! that fail or take their time.
//! [`Fabric`] has those of the network: delay, and random loss, which [`Fabric::seed`]
//! repeats. A listener whose events nobody reads has a full backlog in the end.
//!
//! # Time
//! The clock advances by itself when two conditions hold: a thread waits for events of a channel,
//! for anything of a node, or in a command that blocks; and all threads of the process sleep
//! (according to `/proc/self/task`) or compute for long, see below. It then jumps to what happens next, or to the end of the wait. So no
//! deadline of one thread passes while another thread works or is ready to run. A thread that has
//! never used the fabric, such as one of another test, stops the clock only until it has computed
//! for the [idle time](Fabric::set_idle_time), 20 ms during which nothing happened on the fabric;
//! for a thread that has used the fabric, the limit is fifty times as long. As with the kernel, a
//! wait without a deadline for something that never happens never ends.
//!
//! Other waits are by the machine's clock, and do not move this one: `poll(2)` and `epoll` on a
//! descriptor, and waits for completions or asynchronous events of `rdmacm_verbs`. A program
//! or a runtime that waits in such a way uses
//! [`next_due`](rdmacm_core::EventChannel::next_due) and
//! [`advance_to`](rdmacm_core::EventChannel::advance_to), or [`Fabric::advance`].

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
mod held_command;
mod host;
mod host_state;
mod id;
mod iwarp;
mod kernel_command;
mod kernel_version;
mod multicast;
mod network;
mod random;
mod readiness;
mod sim_state;
mod subnet;
mod tcp;
mod threads;
mod timer;
mod ucma_file;
mod verbs;
mod waits;

pub use adapter::{Adapter, Port};
pub use fabric::{Fabric, SubnetAdmin};
pub use held_command::HeldCommand;
pub use host::Host;
pub use kernel_command::KernelCommand;
pub use kernel_version::KernelVersion;
pub use network::MessageKind;
pub use verbs::VerbsObjects;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
