//! Why a stream has failed.

use rdmacm_rsocket::ProtocolError;
use rdmacm_verbs::Error;

use crate::data::{Failure, failed_request};
use crate::error::Cause;

/// Why nothing more can be transferred.
#[derive(Clone, Debug)]
pub(super) enum StreamFailure {
    /// A request failed, or the device.
    Requests(Failure),
    /// The peer did what the protocol does not allow.
    Protocol(ProtocolError),
    /// This side has aborted the stream.
    Aborted,
}

impl StreamFailure {
    pub(super) fn refused(error: Error) -> Self {
        Self::Requests(Failure::Refused(error))
    }

    pub(super) fn device(error: Error) -> Self {
        Self::Requests(Failure::Device(error))
    }

    /// Whether it is a reason, rather than the consequence of one.
    pub(super) fn is_reason(&self) -> bool {
        match self {
            Self::Requests(failure) => failure.is_reason(),
            Self::Protocol(_) | Self::Aborted => true,
        }
    }

    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Protocol(error) => Cause::Protocol(*error),
            Self::Aborted => Cause::Aborted,
            Self::Requests(Failure::Request(error)) => Cause::Request(failed_request(error)),
            Self::Requests(Failure::Device(error)) => Cause::device(error.clone()),
            Self::Requests(Failure::Flushed | Failure::Refused(_)) => Cause::PeerGone,
        }
    }
}
