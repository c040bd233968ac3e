//! Queue pairs and data of soft RDMA devices, without C: the kernel's verbs
//! interface, `/dev/infiniband/uverbsN`, for the drivers rxe (RoCE v2) and siw
//! (iWARP).
//!
//! A [`Context`] is an open device. On it are made [`ProtectionDomain`]s,
//! [`CompletionQueue`]s and [`QueuePair`]s, which are moved from state to state
//! and asked for their attributes. A [`QueuePair`] is what
//! [`rdmacm_core::QueuePair`] asks for, so the connection manager can connect
//! it. Connected, it takes [`SendRequest`]s and memory to receive into, and gives
//! [`Completion`]s back, without a system call but the one that tells a soft device to
//! look.
//!
//! * **Memory.** A [`Buffer`] is owned: posting takes it, its completion gives it back,
//!   and while the device may use it nobody can reach it. What peers may reach is
//!   [`RemoteAccessRegion`], which is never a slice. Dropping a queue pair, a completion
//!   or a context at any moment, in any order, never frees what a device still uses.
//! * Whatever is made keeps alive what it was made from: handles may be
//!   dropped in any order. The last one destroys the object in the kernel.
//! * What the device would choke on is refused before it is posted, and comes back
//!   with the reason: [`PostError`].
//! * The drivers put words of their own behind the kernel's, in versions of
//!   their own: a device of another driver, or another version, is refused by
//!   [`Error::Driver`].
//! * Every error names the operation, the kernel's command, the error number
//!   and, where the number tells one, the likely cause. A request that failed says
//!   what it was, the device's status and what that means.
//! * The kernel compares the caller's credentials with those at the open:
//!   after `setuid`, `capset` or `fork` every command is `EACCES`, destroying
//!   included. Open the context afterwards. Memory that a device may use because
//!   of that is kept, if need be for good.
//!
//! # A message
//! ```no_run
//! use std::time::Duration;
//! use rdmacm_core::{QpType, RdmaDevice};
//! use rdmacm_verbs::{Context, QueuePair, SendOperation, SendRequest};
//! # fn connect(_: &QueuePair) {}
//!
//! # fn example(device: &RdmaDevice) -> Result<(), Box<dyn std::error::Error>> {
//! let context = Context::open(device)?;
//! // With a protection domain and completion queues of its own.
//! let queue_pair = QueuePair::options(QpType::RC).waitable().create(&context)?;
//! let room = queue_pair.protection_domain().allocate(4096)?;
//! queue_pair.post_receive(room)?;
//! connect(&queue_pair); // rdmacm_core::IdHandle::with, or the crate rdmacm
//!
//! let hello = queue_pair.protection_domain().register(*b"hello")?;
//! queue_pair.post_send(SendRequest::new(SendOperation::Send, hello))?;
//! if let Some(answer) = queue_pair.receive_queue().next(Duration::from_secs(1))? {
//!     let bytes = answer.result?.bytes as usize;
//!     if let Some(room) = answer.sg_list.into_buffer() {
//!         println!("{:?}", &room[..bytes]);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod address_handle;
mod async_events;
mod close_signal;
mod completion;
mod completion_channel;
mod completion_queue;
mod context;
mod device_source;
mod error;
mod gid_table;
mod grh;
mod in_flight_map;
mod in_flight_ring;
mod limits;
mod mapping;
mod memory;
mod operation;
mod port;
mod process_mark;
mod protection_domain;
mod provider;
mod queue_pair;
mod random;
mod readable;
mod removal;
mod request;
mod revocable_file;
mod shared_receive_queue;
mod token;
mod uverbs;
mod work_queue;

pub use address_handle::AddressHandle;
pub use async_events::{AsyncEvent, AsyncEventSource, AsyncEvents};
pub use completion::{Completion, CompletionError, DatagramSource, Done, WorkId, WorkKind};
pub use completion_channel::CompletionChannel;
pub use completion_queue::{CompletionQueue, CqOptions};
pub use context::Context;
pub use device_source::{DeviceSource, SystemDevices};
pub use error::{CommandError, Error, PostError, Result};
pub use gid_table::GidEntry;
pub use grh::Grh;
pub use limits::DeviceLimits;
pub use memory::{Buffer, RawRegion, RemoteAccessRegion, RemoteMemory, SgList, Sge};
pub use operation::Operation;
pub use port::PortAttr;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QpCaps, QpOptions, QueuePair};
pub use rdmacm_abi::uverbs::{AsyncEventKind, CommandNumber, WcOpcode, WcStatus, WrOpcode};
pub use request::{SendOperation, SendRequest};
pub use shared_receive_queue::{SharedReceiveQueue, SrqOptions};
pub use token::Token;
pub use uverbs::{Call, UverbsFile};
