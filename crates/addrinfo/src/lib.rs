//! Resolves names and services to RDMA addresses, sources, devices and routes, as
//! `rdma_getaddrinfo(3)` does, through the system's name resolver and the kernel's
//! connection manager.
//!
//! [`resolve`] returns **every** address of a name, in the system's order, each
//! with the source, device, port, GIDs and path records by which RDMA reaches it.
//! Unreachable addresses follow the reachable ones, each with the reason. One
//! deadline covers everything, the name server and the wait for a missing device node included.
//!
//! ```no_run
//! use rdmacm_addrinfo::{Hints, resolve};
//!
//! for candidate in resolve("storage-7", "7471", &Hints::rc())? {
//!     println!("{candidate}"); // 10.1.0.7:7471 from 10.1.0.3 via mlx5_0 port 1, or why not
//! }
//! # Ok::<(), rdmacm_addrinfo::Error>(())
//! ```
//!
//! # Features
//! * `hickory`: `HickoryResolver`, a [`NameResolver`] in pure Rust, for an [`AddrInfoResolver`] to use
//!   instead of the system's.

mod acm;
mod addr_info;
mod addr_info_resolver;
mod by_event;
mod candidate;
mod channel_source;
mod entry;
mod error;
mod flags;
mod hints;
mod kind;
mod local;
mod lookup_limit;
mod names;
mod native;
mod probe_target;
mod prober;
mod route;
mod services;
mod transports;
mod unreachable;

pub use acm::Acm;
pub use addr_info::AddrInfo;
pub use addr_info_resolver::AddrInfoResolver;
pub use by_event::{AddrInfoResolution, ResolveAddrInfo};
pub use error::{Error, NameError, Result, Unanswered};
pub use flags::AddrInfoFlags;
pub use hints::{DEFAULT_DEADLINE, Hints};
pub use kind::allowed_qp_types;
pub use local::{LocalAddress, interface_addresses};
#[cfg(feature = "hickory")]
pub use names::HickoryResolver;
pub use names::{Host, HostQuery, NameResolver, ServiceKind, SystemResolver, parse_numeric};
pub use route::{DevicePort, Route};
pub use unreachable::{Reason, Step, Unreachable};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Resolves a node and a service to RDMA addresses. Blocks the calling thread, until the deadline of
/// the hints at the most.
///
/// The node is a host name or an IP address (IPv6 with an optional scope, by
/// interface name or number), the service a port number or a service name. Without a
/// node, the address of the hints is used: the source if passive, otherwise the
/// destination. Without that too, the result is the wildcard addresses if passive,
/// otherwise the loopback addresses, which no RDMA device serves.
///
/// In a passive resolution the node may also be the name of a network interface or an
/// RDMA device of this machine, which takes precedence over a host of that name and
/// stands for its addresses. [`AddrInfoResolver::local`] lists all addresses that RDMA
/// serves.
///
/// With [`AddrInfoFlags::SA`] the service is an InfiniBand service, by name or by
/// number (decimal, hexadecimal after `0x`, or octal after `0`). The kernel queries the
/// subnet administrators of all active InfiniBand ports at once; the result is the
/// records of the first that answers, each with the port that asked. Needs Linux
/// 6.18 or newer.
///
/// The kernel resolves 64 addresses at a time. If a name has more, each batch gets an
/// equal share of the time left.
///
/// Each call uses an [`AddrInfoResolver`] of its own. A program that resolves often keeps one,
/// which bounds the lookups that outlive their deadlines.
///
/// The list is never empty: a name without addresses is an error.
///
/// # Errors
/// [`Error::NothingToResolve`], [`Error::Hints`], [`Error::QpType`] and
/// [`Error::NulInText`] if the arguments are invalid; [`Error::Name`],
/// [`Error::LookupDeadline`] and the like if the name lookup fails; [`Error::Rdma`] if
/// the connection manager cannot be used, or does not support services;
/// [`Error::NoInfinibandPort`] and [`Error::NoService`] if a service is not found.
#[doc(alias = "rdma_getaddrinfo")]
#[doc(alias = "rdma_freeaddrinfo")]
pub fn resolve<'name>(
    node: impl Into<Option<&'name str>>,
    service: impl Into<Option<&'name str>>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>> {
    AddrInfoResolver::for_one_resolution().resolve(node, service, hints)
}
