//! The Linux RDMA connection manager's user ABI: every command, structure and
//! number of `/dev/infiniband/rdma_cm` (ucma), as plain Rust data.
//!
//! This crate makes no system call. A program writes an 8-byte [`Header`] and a request
//! in one `write(2)`; the kernel writes its response to the address in the request.
//! [`Command`] ties a request to its [`CommandNumber`] and its response.
//!
//! * Structures are `repr(C)` and carry zerocopy's traits. `IntoBytes` refuses
//!   hidden padding at compile time, so no stale stack byte can reach the
//!   kernel; reserved words are [`Reserved`] fields, which have one value: zero.
//! * Kernel integers are newtypes with constants, not enums: a number that a newer
//!   kernel adds is a valid value without a name.
//! * Sizes, alignments and offsets are asserted against the C headers' numbers
//!   at compile time; [`layout`] exports the same table for comparison with
//!   the headers themselves.
//!
//! [`uverbs`] has the commands of `/dev/infiniband/uverbsN` for queue pairs, and the
//! queues through which they send and receive.
//!
//! Integers are in host byte order unless their type or their documentation
//! says big-endian. Layouts are those of Linux 7.3; items that Linux 6.1 lacks say so.
//!
//! ```
//! use rdmacm_abi::{Command, CreateId, Header, Pointer, PortSpace, QpType};
//! use zerocopy::IntoBytes;
//!
//! let request = CreateId::new(1, PortSpace::TCP, QpType::RC);
//! assert_eq!(Header::of::<CreateId>().as_bytes().len() + request.as_bytes().len(), 32);
//! assert_eq!(CreateId::POINTER, Pointer::Response { offset: 8 });
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

#[macro_use]
mod number;

mod ah_attr;
mod big_endian;
mod bind;
mod command;
mod command_number;
mod conn_param;
mod connect;
mod ece;
mod event;
mod frame;
mod header;
mod id;
pub mod layout;
mod limits;
mod listen;
mod migrate;
mod multicast;
mod notify;
mod option;
mod path;
mod port_space;
mod qp_attr;
mod qp_number;
mod query;
mod reject;
mod reserved;
mod resolve;
mod service;
mod sidr;
mod sockaddr;
mod ud_param;
pub mod uverbs;
mod write_event;

pub use ah_attr::{AhAttr, GlobalRoute};
pub use big_endian::{Be16, Be32, Be64};
pub use bind::{Bind, BindIp};
pub use command::{Command, NoResponse, Pointer};
pub use command_number::CommandNumber;
pub use conn_param::{ConnParam, PrivateDataTooLong};
pub use connect::{Accept, Connect, Disconnect};
pub use ece::Ece;
pub use event::{EventNumber, EventParam, EventResponse, GetEvent};
pub use frame::Frame;
pub use header::Header;
pub use id::{CreateId, CreateIdResponse, DestroyId, DestroyIdResponse};
pub use limits::*;
pub use listen::Listen;
pub use migrate::{MigrateId, MigrateIdResponse};
pub use multicast::{JoinFlags, JoinIpMulticast, JoinMulticast, LeaveMulticast};
pub use notify::Notify;
pub use option::{IbOption, IdOption, OptionLevel, SetOption};
pub use path::{PathFlags, PathRecord, PathRecordData, UserPathRecord};
pub use port_space::PortSpace;
pub use qp_attr::{InitQpAttr, QpAttr};
pub use qp_number::{AccessFlags, NodeType, PathMtu, QpAttrMask, QpState, QpType};
pub use query::{
    Query, QueryAddr, QueryAddrResponse, QueryGid, QueryIbService, QueryIbServiceResponse,
    QueryOption, QueryPath, QueryPathResponse, QueryRoute, QueryRouteResponse,
};
pub use reject::{Reject, RejectReason};
pub use reserved::Reserved;
pub use resolve::{ResolveAddr, ResolveIp, ResolveRoute};
pub use service::{IbService, ResolveIbService, ServiceFlags, ServiceRecord};
pub use sidr::SidrStatus;
pub use sockaddr::{AddressFamily, IpSlot, SockaddrIb, SockaddrIn, SockaddrIn6, SockaddrStorage};
pub use ud_param::UdParam;
pub use write_event::{WriteCmEvent, WriteEventParam};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
