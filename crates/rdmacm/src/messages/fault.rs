//! Why nothing more is carried, and whose doing that is.

use std::time::Duration;

use rdmacm_core::Transport;
use rdmacm_verbs::{CompletionError, Error, WcStatus};

/// How long a failure waits for the event that the peer has disconnected, which may
/// have caused it: a process that is killed loses its memory and its queue pair before
/// its kernel disconnects for it.
const DEPARTURE_WAIT: Duration = Duration::from_secs(1);

/// Why nothing more is carried.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The connection has ended, and something else says why.
    Flushed,
    /// The device takes no more requests, and something else says why.
    Refused(Error),
    /// A request failed.
    Failed(CompletionError),
    /// The device has gone, or talks nonsense.
    Device(Error),
}

impl Fault {
    pub(super) fn of(error: CompletionError, transport: Transport) -> Self {
        if is_aftermath(&error, transport) {
            Self::Flushed
        } else {
            Self::Failed(error)
        }
    }

    /// Whether it says why, rather than only that there is a reason.
    pub(super) fn is_reason(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Device(_))
    }

    /// How long the event that the peer has disconnected is waited for.
    ///
    /// A side whose requests were only flushed may be the one that answered a request
    /// with an error. It leaves the peer, which knows more, the time to disconnect.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Flushed => DEPARTURE_WAIT * 2,
            Self::Refused(_) => DEPARTURE_WAIT,
            Self::Failed(error) if is_answer(error.status) => DEPARTURE_WAIT,
            Self::Failed(_) | Self::Device(_) => Duration::ZERO,
        }
    }
}

/// Whether the peer's device answered so, or not at all, as that of a process does whose
/// memory and queue pairs are being destroyed.
fn is_answer(status: WcStatus) -> bool {
    matches!(
        status,
        WcStatus::REM_INV_REQ_ERR
            | WcStatus::REM_ACCESS_ERR
            | WcStatus::REM_OP_ERR
            | WcStatus::RETRY_EXC_ERR
            | WcStatus::RNR_RETRY_EXC_ERR
    )
}

/// Whether it says no more than that something else ended the connection.
///
/// With the device gone, the queue says so when it is asked next. siw fails a message
/// that it has sent to its last byte if the peer disconnects before it is told of that
/// (`siw_qp_sq_proc_tx`), in the words for memory that is not registered: none of that is
/// posted here.
fn is_aftermath(error: &CompletionError, transport: Transport) -> bool {
    let is_cut_short = error.status == WcStatus::LOC_QP_OP_ERR && transport == Transport::IWarp;
    error.is_flush() || error.is_device_gone() || is_cut_short
}
