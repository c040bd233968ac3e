//! Errors of the verbs layer.

use std::io;

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

/// Why a queue pair was not created: what the device has refused, or else the error.
pub(crate) fn queue_pair_error(error: io::Error) -> Cause {
    match error.downcast::<rdmacm_verbs::Error>() {
        Ok(refused) if refused.raw_os_error().is_some() || refused.is_gone() => {
            device_error(refused)
        }
        Ok(invalid) => Cause::QueuePair(invalid.into()),
        Err(error) => Cause::QueuePair(error),
    }
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
