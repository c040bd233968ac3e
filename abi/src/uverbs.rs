//! The verbs user ABI: the commands of `/dev/infiniband/uverbsN` for queue pairs
//! and the objects that they use, and the private ABI of the drivers rxe and siw.
//!
//! A command is one `write(2)` of a [`Header`] and a request, as with the
//! connection manager, but sizes are counted in words of 4 bytes and the
//! request's size includes the header. A driver may append data to the response:
//! [`Rxe`] and [`Siw`] wrap the requests for a device of that driver. A request to
//! which a driver's data is appended is a type of its own, as [`siw::RegMr`].
//!
//! Data is posted to queues in memory shared with the driver; [`rxe`] and [`siw`]
//! have their elements. Events are read from descriptors, as
//! [`CompletionEvent`] and [`AsyncEvent`].
//!
//! The interface is version 6 on every kernel; each driver has a version of
//! its own, [`rxe::ABI_VERSION`] and [`siw::ABI_VERSION`].
//!
//! ```
//! use rdmacm_abi::uverbs::{CreateCq, Header, Siw};
//!
//! let header = Header::of::<Siw<CreateCq>>();
//! assert_eq!((header.request_words, header.response_words), (10, 6));
//! ```

mod address_handle;
mod async_event;
mod command;
mod command_number;
mod completion_channel;
mod completion_queue;
mod context;
mod destination;
mod device;
mod driver;
mod header;
mod memory_region;
mod multicast;
mod port;
mod post_send;
mod protection_domain;
mod queue_pair;
pub mod rxe;
mod shared_receive_queue;
pub mod siw;
mod work_completion;
mod work_request;

pub use address_handle::{CreateAh, CreateAhResponse, DestroyAh};
pub use async_event::{AsyncEvent, AsyncEventKind};
pub use command::{Command, MAX_REQUEST};
pub use command_number::CommandNumber;
pub use completion_channel::{
    CompletionEvent, CreateCompletionChannel, CreateCompletionChannelResponse,
};
pub use completion_queue::{
    CreateCq, CreateCqResponse, DestroyCq, DestroyCqResponse, ReqNotifyCq, ResizeCq,
    ResizeCqResponse,
};
pub use context::{GetContext, GetContextResponse};
pub use destination::QpDestination;
pub use device::{QueryDevice, QueryDeviceResponse};
pub use driver::{DriverId, Rxe, Siw};
pub use header::Header;
pub use memory_region::{DeregMr, RegMr, RegMrResponse, ReregFlags, ReregMr, ReregMrResponse};
pub use multicast::{AttachMulticast, DetachMulticast};
pub use port::{QueryPort, QueryPortResponse};
pub use post_send::{PostSend, PostSendResponse};
pub use protection_domain::{AllocPd, AllocPdResponse, DeallocPd};
pub use queue_pair::{
    CreateQp, CreateQpResponse, DestroyQp, DestroyQpResponse, ModifyQp, QueryQp, QueryQpResponse,
};
pub use shared_receive_queue::{
    CreateSrq, CreateSrqResponse, DestroySrq, DestroySrqResponse, ModifySrq, QuerySrq,
    QuerySrqResponse, SrqAttrMask,
};
pub use work_completion::{WcFlags, WcOpcode, WcStatus, WorkCompletion};
pub use work_request::{ImmediateOrKey, SendFlags, Sge, WrOpcode};
