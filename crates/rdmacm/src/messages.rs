//! Connections that carry messages, and read and write memory of the peer.

mod connection;
mod deferred;
mod factory;
mod in_flight;
mod message;
mod options;
mod pending_failure;
mod queue_pair;
mod registered_buffer;
mod state;
mod status;
mod thread_wait;
mod transfer;
mod transfer_error;
mod try_sent;
mod wait;
mod waiters;

pub use message::Message;
pub use options::MessageOptions;
pub use registered_buffer::RegisteredBuffer;
pub use transfer_error::TransferError;
pub use try_sent::TrySent;

pub(crate) use connection::MessageConnection;
pub(crate) use factory::MessageQueuePairFactory;
pub(crate) use queue_pair::{Destination, MessageQueuePair, ReturnedMemory};
pub(crate) use state::{Arrival, State};
pub(crate) use transfer::{NewTransfer, StartedTransfer};
pub(crate) use waiters::Interest;
