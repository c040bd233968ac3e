//! Work on a connection that stops when the connection closes.

use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;

use rdmacm::core::Deadline;
use rdmacm::tokio::CmConnection;
use rdmacm::{CLOSE_DEADLINE, CloseReason};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Why work on a connection stopped early.
#[derive(Debug)]
pub(crate) enum WorkError {
    /// `SIGINT` or `SIGTERM` arrived.
    Interrupted,
    /// Connecting failed.
    Unconnected(String),
    /// The connection closed.
    Ended(CloseReason),
    /// A request or the peer failed.
    Failed(Failure),
}

impl fmt::Display for WorkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Unconnected(error) => f.write_str(error),
            Self::Ended(ending) => match ending.failure() {
                Some(failure) => write!(f, "the connection ended: {failure}"),
                None => f.write_str("the peer disconnected"),
            },
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

/// How long the disconnect may arrive after the request that failed because of it. The
/// kernel frees the memory and the queue pairs of a killed process before it disconnects,
/// so requests of its peer fail first with errors of their own.
///
/// Shorter than [`CLOSE_DEADLINE`], for which the peer waits when its requests are flushed:
/// if a request was invalid, this side reports first.
const DISCONNECT_DELAY: Duration = Duration::from_secs(3);

/// Runs `work` until the connection closes, a signal arrives that `interrupt` watches for, or the
/// peer has been silent for as long as `silence`, if there is such a limit. After the close, `work` has `rest` to process what
/// arrived before it.
pub(crate) async fn run_until_closed<T>(
    connection: &CmConnection<Endpoint>,
    interrupt: Option<&Interrupt>,
    silence: Option<Duration>,
    rest: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, WorkError> {
    let mut work = pin!(work);
    let ending = tokio::select! {
        biased;
        done = work.as_mut() => match done {
            Ok(done) => return Ok(done),
            Err(failure) => return Err(reason(connection, failure).await),
        },
        () = interrupted(interrupt) => return Err(WorkError::Interrupted),
        Ok(ending) = connection.closed(Deadline::Never) => ending,
        silent = connection.queue_pair().watch_peer(silence) => {
            return Err(WorkError::Failed(silent));
        }
    };
    match timeout(rest, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(failure @ Failure::Peer(_))) => Err(WorkError::Failed(failure)),
        Ok(Err(_)) | Err(_) => Err(WorkError::Ended(ending)),
    }
}

async fn interrupted(interrupt: Option<&Interrupt>) {
    match interrupt {
        Some(interrupt) => interrupt.wait().await,
        None => pending().await,
    }
}

/// Why work failed: the close of the connection if there is one, otherwise the failure.
async fn reason(connection: &CmConnection<Endpoint>, failure: Failure) -> WorkError {
    let wait = match failure {
        Failure::Over => CLOSE_DEADLINE,
        Failure::Request(_) | Failure::Post(_) => DISCONNECT_DELAY,
        Failure::Verbs(_) | Failure::Stream(_) | Failure::Silent(_) | Failure::Peer(_) => {
            return WorkError::Failed(failure);
        }
    };
    let ended = connection.closed(wait).await;
    ended.map_or(WorkError::Failed(failure), WorkError::Ended)
}
