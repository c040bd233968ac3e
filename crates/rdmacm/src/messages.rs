//! Connections that carry messages, and read and write memory of the peer.

mod completions;
mod connection;
mod device;
mod factory;
mod failure;
mod keep_alive;
mod message;
mod options;
mod queue_pair;
mod registered_buffer;
mod state;
mod transfer;
mod transfer_error;
mod wait;
mod waiters;

pub use message::Message;
pub use options::MessageOptions;
pub use registered_buffer::RegisteredBuffer;
pub use transfer_error::TransferError;

pub(crate) use completions::{WatchedChannels, next_completion};
pub(crate) use connection::MessageConnection;
pub(crate) use device::{Devices, OpenDevice, OpenDevices, open_context};
pub(crate) use factory::MessageQueuePairFactory;
pub(crate) use failure::Failure;
pub(crate) use queue_pair::{Destination, MessageQueuePair};
pub(crate) use state::{Arrival, State};
pub(crate) use transfer::StartedTransfer;
pub(crate) use waiters::Interest;

use rdmacm_verbs::{CompletionError, WorkKind};

use crate::error::Cause;
use crate::failed_request::FailedRequest;

/// A refusal of the verbs layer.
pub(crate) fn device_error(error: rdmacm_verbs::Error) -> Cause {
    let errno = error.raw_os_error();
    Cause::Device {
        error: error.into(),
        errno,
    }
}

/// A completion with an error.
pub(crate) fn failed_request(error: &CompletionError) -> FailedRequest {
    let opcode = match error.kind {
        WorkKind::Send(opcode) => Some(opcode),
        _ => None,
    };
    let mut failed = FailedRequest::new(opcode, error.status);
    failed.vendor_error = error.vendor;
    failed.cause = error.cause();
    failed
}
