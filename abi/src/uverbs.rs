//! The verbs user ABI: the commands of `/dev/infiniband/uverbsN` that make,
//! move and destroy queue pairs, and what the drivers of rxe and siw say
//! besides.
//!
//! A command is one `write(2)` of a [`Header`] and a request, as with the
//! connection manager, but sizes are counted in words of 4 bytes and the
//! request's counts the header too. A driver's own words stand behind those
//! of the response: [`Rxe`] and [`Siw`] are the same requests, asked of a
//! device of that driver.
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

mod command;
mod command_number;
mod completion_queue;
mod context;
mod destination;
mod device;
mod driver;
mod header;
mod port;
mod protection_domain;
mod queue_pair;
pub mod rxe;
pub mod siw;

pub use command::{Command, MAX_REQUEST};
pub use command_number::CommandNumber;
pub use completion_queue::{CreateCq, CreateCqResponse, DestroyCq, DestroyCqResponse};
pub use context::{GetContext, GetContextResponse};
pub use destination::QpDestination;
pub use device::{QueryDevice, QueryDeviceResponse};
pub use driver::{DriverId, Rxe, Siw};
pub use header::Header;
pub use port::{QueryPort, QueryPortResponse};
pub use protection_domain::{AllocPd, AllocPdResponse, DeallocPd};
pub use queue_pair::{
    CreateQp, CreateQpResponse, DestroyQp, DestroyQpResponse, ModifyQp, QueryQp, QueryQpResponse,
};
