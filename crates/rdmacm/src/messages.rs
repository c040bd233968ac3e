//! Connections that carry messages, and read and write memory of the peer.

mod completions;
mod connection;
mod deferred;
mod device;
mod factory;
mod failure;
mod in_flight;
mod keep_alive;
mod message;
mod options;
mod queue_pair;
mod registered_buffer;
mod state;
mod thread_wait;
mod transfer;
mod transfer_error;
mod wait;
mod waiters;

pub use message::Message;
pub use options::MessageOptions;
pub use registered_buffer::RegisteredBuffer;
pub use transfer_error::TransferError;

pub(crate) use completions::next_completion;
pub(crate) use connection::MessageConnection;
pub(crate) use device::{CompletionHandler, Devices, OpenDevice, Side, open_context};
pub(crate) use factory::MessageQueuePairFactory;
pub(crate) use failure::Failure;
pub(crate) use keep_alive::KeepAlive;
pub(crate) use queue_pair::{Destination, ENDLESS_RETRIES, MessageQueuePair};
pub(crate) use state::{Arrival, State};
pub(crate) use transfer::{NewTransfer, StartedTransfer};
pub(crate) use waiters::Interest;

use rdmacm_verbs::{CompletionError, WorkKind};

use crate::error::{Cause, Error};
use crate::failed_request::FailedRequest;

/// A refusal of the verbs layer.
pub(crate) fn device_error(error: rdmacm_verbs::Error) -> Cause {
    let errno = error.raw_os_error();
    Cause::Device {
        error: error.into(),
        errno,
    }
}

/// The same error; what the device has refused is its cause.
pub(crate) fn with_device_error(error: Error) -> Error {
    error.map_cause(|cause| match cause {
        Cause::QueuePair(error) => match error.downcast::<rdmacm_verbs::Error>() {
            Ok(refused) if refused.raw_os_error().is_some() || refused.is_gone() => {
                device_error(refused)
            }
            Ok(invalid) => Cause::QueuePair(invalid.into()),
            Err(error) => Cause::QueuePair(error),
        },
        cause => cause,
    })
}

/// A completion with an error.
pub(crate) fn failed_request(error: &CompletionError) -> FailedRequest {
    let opcode = match error.kind {
        WorkKind::Send(opcode) => Some(opcode),
        _ => None,
    };
    let mut failed = FailedRequest::new(opcode, error.status);
    failed.vendor_error = error.vendor_error;
    failed.cause = error.cause();
    failed
}
