//! Whether a connection can transfer.

use crate::close_reason::CloseReason;
use crate::data::Failure;
use crate::error::Cause;
use crate::failed_request::FailedRequest;

/// Whether a connection can transfer.
#[derive(Debug)]
pub(super) enum Status {
    Open,
    /// It cannot, and the reason is about to be known.
    Failing,
    Closed(Cause),
}

impl Status {
    /// By its failure and whether that is [final](super::pending_failure::PendingFailure::check), by why it has
    /// closed, and whether this side has stopped it.
    pub(super) fn of(
        failure: Option<(Failure, bool)>,
        closed: Option<CloseReason>,
        is_stopped: bool,
    ) -> Self {
        match (failure, closed) {
            (Some((Failure::Device(error), _)), _)
            | (Some((Failure::Refused(error), true)), None) => Self::Closed(Cause::device(error)),
            (Some((Failure::Request(error), true)), _) => {
                Self::Closed(Cause::Request(FailedRequest::from_completion(&error)))
            }
            (Some((Failure::Request(error), false)), Some(_)) => {
                let request = FailedRequest::from_completion(&error);
                let reason = CloseReason::with_failed_request(closed, request);
                Self::Closed(Cause::Closed(reason))
            }
            (_, Some(reason)) => Self::Closed(Cause::Closed(reason)),
            // Flushed: this side has disconnected, and the peer does not reply.
            (None | Some((Failure::Flushed, true)), None) if is_stopped => {
                Self::Closed(Cause::Stopped)
            }
            (Some(_), None) => Self::Failing,
            (None, None) => Self::Open,
        }
    }
}

/// Whether this side ends the connection, because the peer need not have noticed its failure.
pub(super) fn ends_connection(failure: Option<&(Failure, bool)>, is_closed: bool) -> bool {
    match failure {
        Some((Failure::Request(_), true)) => true,
        Some((Failure::Flushed, true)) => !is_closed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rdmacm_verbs::{Error, WcStatus};

    use super::*;

    fn context_closed() -> Error {
        let device = String::from("rxe0");
        Error::ContextClosed { device }
    }

    fn closed() -> CloseReason {
        let request = FailedRequest::new(None, WcStatus::RETRY_EXC_ERR);
        CloseReason::with_failed_request(None, request)
    }

    #[test]
    fn a_connection_without_a_failure_is_open_until_it_is_stopped_or_closed() {
        assert!(matches!(Status::of(None, None, false), Status::Open));
        let stopped = Status::of(None, None, true);
        assert!(matches!(stopped, Status::Closed(Cause::Stopped)));
        let status = Status::of(None, Some(closed()), false);
        assert!(matches!(status, Status::Closed(Cause::Closed(_))));
        assert!(!ends_connection(None, false));
    }

    #[test]
    fn consequences_wait_for_their_reason() {
        for is_final in [false, true] {
            let flushed = || Some((Failure::Flushed, is_final));
            let status = Status::of(flushed(), None, false);
            assert!(matches!(status, Status::Failing));
            let stopped = Status::of(flushed(), None, true);
            let is_stopped = matches!(stopped, Status::Closed(Cause::Stopped));
            assert_eq!(is_stopped, is_final, "{stopped:?}");
            let status = Status::of(flushed(), Some(closed()), false);
            assert!(matches!(status, Status::Closed(Cause::Closed(_))));
            assert_eq!(ends_connection(flushed().as_ref(), false), is_final);
            assert!(!ends_connection(flushed().as_ref(), true));
        }
        let refused = |is_final| Some((Failure::Refused(context_closed()), is_final));
        assert!(matches!(
            Status::of(refused(false), None, false),
            Status::Failing
        ));
        let status = Status::of(refused(true), None, false);
        assert!(matches!(status, Status::Closed(Cause::Device { .. })));
    }

    #[test]
    fn a_device_that_is_gone_is_the_reason_whatever_the_event() {
        for closed in [None, Some(closed())] {
            let failure = Some((Failure::Device(context_closed()), false));
            assert!(!ends_connection(failure.as_ref(), closed.is_some()));
            let status = Status::of(failure, closed, false);
            assert!(matches!(status, Status::Closed(Cause::Device { .. })));
        }
    }
}
