//! Names and services to RDMA addresses, sources, devices and routes: what
//! `rdma_getaddrinfo(3)` documents, asked of the system's resolver and of the
//! kernel's connection manager.
//!
//! [`resolve`] gives **every** address a name has, in the system's order, each
//! with the source, device, port, GIDs and path records by which RDMA reaches
//! it. Addresses that RDMA does not reach stay in the list, behind those it
//! does, and say why. One deadline holds for all of it, the name server
//! included.
//!
//! ```no_run
//! use rdmacm_addrinfo::{Hints, resolve};
//!
//! for candidate in resolve("storage-7", "7471", &Hints::rc())? {
//!     println!("{candidate}"); // 10.1.0.7:7471 from 10.1.0.3 via mlx5_0 port 1, or why not
//! }
//! # Ok::<(), rdmacm_addrinfo::Error>(())
//! ```

mod acm;
mod addr_info;
mod ask;
mod by_event;
mod candidate;
mod channels;
mod devices;
mod directory;
mod entry;
mod error;
mod flags;
mod hints;
mod kind;
mod lead;
mod local;
mod names;
mod native;
mod places;

mod route;
mod services;
mod unreachable;

pub use acm::Acm;
pub use addr_info::AddrInfo;
pub use by_event::ResolveAddrInfo;
pub use directory::Directory;
pub use error::{Error, NameError, Result, Unanswered};
pub use flags::AddrInfoFlags;
pub use hints::{DEFAULT_DEADLINE, Hints};
pub use kind::allowed_qp_types;
pub use local::{LocalAddress, interface_addresses};
#[cfg(feature = "hickory")]
pub use names::HickoryResolver;
pub use names::{Host, HostQuestion, Resolver, ServiceKind, SystemResolver, parse_numeric};

pub use route::{Route, Via};
pub use unreachable::{Reason, Step, Unreachable};

/// Resolves a node and a service to everything RDMA can do with them.
///
/// The node is a name or an address (IPv6 with an optional scope, by interface
/// name or number), the service a port or a service's name. Without a node the
/// address of the hints counts: the source if passive, otherwise the
/// destination; without that too, the wildcards if passive, otherwise the
/// loopback addresses, which no RDMA device serves.
///
/// In a passive resolution a node may also be the name of a network interface or
/// an RDMA device of this machine, which goes before a host of that name: it
/// stands for its addresses. [`Directory::local`] lists all that RDMA serves.
///
/// With [`AddrInfoFlags::SA`] the service is one of InfiniBand's, by name or by
/// number (decimal, or hexadecimal behind `0x`, or octal behind `0`), and the
/// subnet administrators of all active InfiniBand ports are asked at once; the
/// records of the first that tells any are the addresses, each from the port that
/// was told. Needs a kernel newer than 6.1.
///
/// The kernel is asked about 64 addresses at a time. Of a name with more, each has its
/// part of the time that is left.
///
/// Each call is a [`Directory`] of its own. A program that resolves often keeps
/// one, which bounds the lookups that deadlines leave behind.
///
/// An empty list does not happen: a name without addresses is an error.
///
/// # Errors
/// [`Error::NothingToResolve`], [`Error::Hints`], [`Error::QpType`] and
/// [`Error::NulInText`] for what cannot be asked; [`Error::Name`],
/// [`Error::LookupDeadline`] and their like when the name has no answer;
/// [`Error::Rdma`] when the kernel's connection manager cannot be asked, or does
/// not know services; [`Error::NoInfinibandPort`] and [`Error::NoService`] when a
/// service is not found.
#[doc(alias = "rdma_getaddrinfo")]
#[doc(alias = "rdma_freeaddrinfo")]
pub fn resolve<'name>(
    node: impl Into<Option<&'name str>>,
    service: impl Into<Option<&'name str>>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>> {
    Directory::new().resolve(node, service, hints)
}
