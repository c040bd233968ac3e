//! Queue pairs and data of soft RDMA devices, without C: the kernel's verbs
//! interface, `/dev/infiniband/uverbsN`, for the drivers rxe (RoCE v2) and siw
//! (iWARP).
//!
//! A [`Context`] is an open device. It creates [`ProtectionDomain`]s,
//! [`CompletionQueue`]s and [`QueuePair`]s. A [`QueuePair`] implements
//! [`rdmacm_core::QueuePair`], so the connection manager can connect it. Once
//! connected, it accepts [`SendRequest`]s and memory to receive into and returns
//! [`Completion`]s. Posting a send makes one system call, the doorbell of a soft device;
//! posting a receive and polling make none.
//!
//! * **Memory.** A [`Buffer`] is owned: posting moves it into the request, and its
//!   completion returns it, so safe code cannot access it while the device may. Memory
//!   that peers may access is a [`RemoteAccessRegion`]: safe code never has a slice of it.
//!   Dropping a queue pair, a completion or a context at any time, in any order, never frees
//!   memory that a device still uses.
//! * Each object keeps alive what it was created from, so handles may be dropped in any
//!   order. Dropping the last one destroys the object in the kernel.
//! * A request that is invalid for the device is not posted; [`PostError`] returns it with
//!   the reason.
//! * Each driver extends the kernel's structs with versioned fields of its own. A device
//!   of another driver or version fails to open with [`Error::Driver`].
//! * Every error names the operation, the kernel's command, the error number and the
//!   likely cause if the number has one. A failed request names its operation, the
//!   device's status and its meaning.
//! * The kernel compares the caller's credentials with those at the time of opening: after `setuid`
//!   or `capset` every command fails with `EACCES`, including those that destroy objects. So open
//!   the context afterwards. If queue pairs could not be destroyed for that reason, a device may
//!   still use their memory: the memory is freed with the last handle of the context if the thread
//!   that closes the context is allowed to destroy them, and is leaked otherwise. In a forked child
//!   the context counts as closed: commands fail with [`Error::ContextClosed`].
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
//! let queue_pair = QueuePair::options(QpType::RC).with_completion_channels().create(&context)?;
//! let buffer = queue_pair.protection_domain().allocate(4096)?;
//! queue_pair.post_receive(buffer)?;
//! connect(&queue_pair); // rdmacm_core::IdHandle::with_queue_pair, or the crate rdmacm
//!
//! let hello = queue_pair.protection_domain().register(*b"hello")?;
//! queue_pair.post_send(SendRequest::new(SendOperation::Send, hello))?;
//! if let Some(answer) = queue_pair.recv_cq().next(Duration::from_secs(1))? {
//!     let bytes = answer.result()?.bytes as usize;
//!     if let Some(buffer) = answer.sg_list.into_buffer() {
//!         println!("{:?}", buffer.get(..bytes));
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
mod fork_detector;
mod gid_table;
mod grh;
mod limits;
mod mapping;
mod memory;
mod opcodes;
mod operation;
mod port;
mod protection_domain;
mod provider;
mod queue_pair;
mod random;
mod readable;
mod removal;
mod request;
mod request_id;
mod resource_list;
mod revocable_file;
mod shared_receive_queue;
mod token;
mod uverbs;
mod work_queue;

pub use address_handle::AddressHandle;
pub use async_events::{AsyncEvent, AsyncEventSource, AsyncEvents};
pub use completion::{
    Completion, CompletionError, CompletionInfo, DatagramSource, WorkId, WorkIds, WorkKind,
};
pub use completion_channel::CompletionChannel;
pub use completion_queue::{CompletionQueue, CompletionWatch, CqOptions};
pub use context::Context;
pub use device_source::{DeviceSource, SystemDeviceSource};
pub use error::{CommandError, Error, PostError, Result};
pub use gid_table::GidEntry;
pub use grh::Grh;
pub use limits::DeviceLimits;
pub use memory::{Buffer, RawRegion, RemoteAccessRegion, RemoteMemory, SgList, Sge};
pub use operation::Operation;
pub use port::PortAttr;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QpCaps, QpOptions, QueuePair, QueuedSend};
pub use rdmacm_abi::uverbs::{AsyncEventKind, CommandNumber, WcOpcode, WcStatus, WrOpcode};
pub use request::{SendOperation, SendRequest};
pub use shared_receive_queue::{SharedReceiveQueue, SrqOptions};
pub use token::Token;
pub use uverbs::{Call, UverbsFile};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
