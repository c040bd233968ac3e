//! Why a stream has failed.

use rdmacm_rsocket::ProtocolError;
use rdmacm_verbs::Error;

use crate::close_reason::CloseReason;
use crate::data::Failure;
use crate::error::Cause;
use crate::failed_request::FailedRequest;

/// Why nothing more can be transferred.
#[derive(Clone, Debug)]
pub(super) enum StreamFailure {
    /// A request failed, or the device. Boxed, so that results that are none are small.
    Requests(Box<Failure>),
    /// The peer did what the protocol does not allow.
    Protocol(ProtocolError),
    /// This side has aborted the stream.
    Aborted,
}

impl StreamFailure {
    pub(super) fn refused(error: Error) -> Self {
        Failure::Refused(error).into()
    }

    pub(super) fn device(error: Error) -> Self {
        Failure::Device(error).into()
    }

    /// Whether a request of this side has failed.
    pub(super) fn is_of_request(&self) -> bool {
        matches!(self, Self::Requests(failure) if matches!(**failure, Failure::Request(_)))
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
            Self::Requests(failure) => match &**failure {
                Failure::Request(error) => Cause::Request(FailedRequest::from_completion(error)),
                Failure::Device(error) => Cause::device(error.clone()),
                // The credentials of the process have changed.
                Failure::Refused(error) if error.raw_os_error() == Some(libc::EACCES) => {
                    Cause::device(error.clone())
                }
                // The connection has ended, and its event was not read yet.
                Failure::Flushed | Failure::Refused(_) => Cause::Closed(CloseReason::UNREAD),
            },
        }
    }
}

impl From<Failure> for StreamFailure {
    fn from(failure: Failure) -> Self {
        Self::Requests(Box::new(failure))
    }
}
