//! Why nothing more can be transferred.

use std::time::Duration;

use rdmacm_core::Transport;
use rdmacm_verbs::{CompletionError, Error, WcStatus};

/// How long a failure waits for the event that the peer has disconnected, which may be its
/// cause: a process that is killed loses its memory and its queue pair before its kernel
/// disconnects for it.
const DISCONNECT_WAIT: Duration = Duration::from_secs(1);

/// Why nothing more can be transferred.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Requests were flushed: the connection is closed, for a reason to be found elsewhere.
    Flushed,
    /// The queue pair takes no more requests, for a reason to be found elsewhere.
    Refused(Error),
    /// A request failed.
    Request(CompletionError),
    /// The device is gone, or its completions are invalid.
    Device(Error),
}

impl Failure {
    pub(crate) fn from_completion(error: CompletionError, transport: Transport) -> Self {
        if is_consequence(&error, transport) {
            Self::Flushed
        } else {
            Self::Request(error)
        }
    }

    /// Whether it is a reason, rather than the consequence of one.
    pub(crate) fn is_reason(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Device(_))
    }

    /// How long to wait for the event that the peer has disconnected.
    ///
    /// If requests were only flushed, this side may have refused a request of the peer, who
    /// knows more and needs time to disconnect.
    pub(crate) fn disconnect_wait(&self) -> Duration {
        match self {
            Self::Flushed => DISCONNECT_WAIT * 2,
            Self::Refused(_) => DISCONNECT_WAIT,
            Self::Request(error) if is_from_peer(error.status) => DISCONNECT_WAIT,
            Self::Request(_) | Self::Device(_) => Duration::ZERO,
        }
    }
}

/// Whether the peer's device refused or did not answer, as the device of a process does
/// whose memory and queue pairs are being destroyed.
fn is_from_peer(status: WcStatus) -> bool {
    matches!(
        status,
        WcStatus::REM_INV_REQ_ERR
            | WcStatus::REM_ACCESS_ERR
            | WcStatus::REM_OP_ERR
            | WcStatus::RETRY_EXC_ERR
            | WcStatus::RNR_RETRY_EXC_ERR
    )
}

/// Whether something else has closed the connection.
///
/// If the device is gone, polling the completion queue says so next. siw fails a message
/// that it has sent completely if the peer disconnects before siw has noticed that
/// (`siw_qp_sq_proc_tx`), with the status for memory that is not registered; all memory that
/// is posted here is.
fn is_consequence(error: &CompletionError, transport: Transport) -> bool {
    let is_cut_short = error.status == WcStatus::LOC_QP_OP_ERR && transport == Transport::IWarp;
    error.is_flush() || error.is_context_closed() || is_cut_short
}
