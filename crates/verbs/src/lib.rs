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

mod completion_queue;
mod context;
mod driver;
mod error;
mod limits;
mod operation;
mod port;
mod protection_domain;
mod queue_pair;
mod uverbs;

pub use completion_queue::CompletionQueue;
pub use context::Context;
pub use driver::Driver;
pub use error::{CommandError, Error, Result};
pub use limits::DeviceLimits;
pub use operation::Operation;
pub use port::PortAttr;
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QpCaps, QpOptions, QueuePair};
pub use rdmacm_abi::uverbs::CommandNumber;
