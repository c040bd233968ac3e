//! Queue pairs of soft RDMA devices, without C: the control path of the
//! kernel's verbs interface, `/dev/infiniband/uverbsN`, for the drivers rxe
//! (RoCE v2) and siw (iWARP).
//!
//! A [`Context`] is an open device. On it are made [`ProtectionDomain`]s,
//! [`CompletionQueue`]s and [`QueuePair`]s, which are moved from state to state
//! and asked for their attributes. A [`QueuePair`] is what
//! [`rdmacm_core::QueuePair`] asks for, so the connection manager can connect
//! it. No data moves yet: the queues' memory is not mapped.
//!
//! * Whatever is made keeps alive what it was made from: handles may be
//!   dropped in any order. The last one destroys the object in the kernel.
//! * The drivers put words of their own behind the kernel's, in versions of
//!   their own: a device of another driver, or another version, is refused by
//!   [`Error::Driver`].
//! * Every error names the operation, the kernel's command, the error number
//!   and, where the number tells one, the likely cause.
//! * The kernel compares the caller's credentials with those at the open:
//!   after `setuid`, `capset` or `fork` every command is `EACCES`, destroying
//!   included. Open the context afterwards. What could not be destroyed goes
//!   with the context's descriptor.
//!
//! # A queue pair
//! ```no_run
//! use rdmacm_core::{QpState, QpType, RdmaDevice};
//! use rdmacm_verbs::{Context, QpCaps, QueuePair};
//!
//! for device in RdmaDevice::list()? {
//!     let context = Context::open(&device)?;
//!     let caps = QpCaps { max_send_wr: 64, ..QpCaps::default() };
//!     // With a protection domain and completion queues of its own.
//!     let queue_pair = QueuePair::options(QpType::RC).caps(caps).create(&context)?;
//!     println!("{}: queue pair {:#x}", device.name, queue_pair.number());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address_handle;
mod async_events;
mod closable;
mod completion;
mod completion_channel;
mod completion_queue;
mod context;
mod ending;
mod error;
mod gid_table;
mod limits;
mod mapping;
mod memory;
mod operation;
mod port;
mod protection_domain;
pub mod provider;
mod queue_pair;
mod readable;
mod removal;
mod request;
mod shared_receive_queue;
mod token;
mod uverbs;
mod window;
mod work_queue;

pub use address_handle::AddressHandle;
pub use async_events::{AsyncEvent, AsyncEvents, Subject};
pub use completion::{Completion, CompletionError, DatagramSource, Done, WorkId, WorkKind};
pub use completion_channel::CompletionChannel;
pub use completion_queue::{CompletionQueue, CqOptions};
pub use context::Context;
pub use error::{CommandError, Error, Refused, Result};
pub use gid_table::GidEntry;
pub use limits::DeviceLimits;
pub use memory::{Buffer, ExposedMemory, Piece, Pieces, RawRegion, RemoteMemory};
pub use operation::Operation;
pub use port::PortAttr;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QpCaps, QpOptions, QueuePair};
pub use rdmacm_abi::uverbs::{AsyncEventKind, CommandNumber, WcOpcode, WcStatus, WrOpcode};
pub use request::{SendOperation, SendRequest};
pub use shared_receive_queue::{SharedReceiveQueue, SrqOptions};
pub use token::Token;
