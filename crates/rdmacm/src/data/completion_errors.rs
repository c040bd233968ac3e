//! Failed requests.

use rdmacm_verbs::{CompletionError, WorkKind};

use crate::failed_request::FailedRequest;

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
