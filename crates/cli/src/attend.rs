//! Work on a connection, until it is done or cannot go on.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use rdmacm::core::Deadline;
use rdmacm::tokio::CmConnection;
use rdmacm::{CLOSE_DEADLINE, CloseReason};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Why work was not done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody asked this process to end.
    Interrupted,
    /// There is no connection.
    Unconnected(String),
    /// The peer disconnected, or was lost.
    Ended(CloseReason),
    /// It cannot be done.
    Failed(Failure),
}

impl fmt::Display for Stop {
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

/// How long the news that the peer has gone may take behind the request that failed for
/// it. A process that is killed loses its memory and its queue pairs first and its
/// connections last, so meanwhile its peer's requests fail as if they were wrong.
///
/// Shorter than the peer waits for this side when its own requests are flushed: where a
/// request was wrong indeed, this side speaks first.
const DEPARTURE: Duration = Duration::from_secs(3);

/// Does `work` unless the connection ends before, or somebody interrupts. What arrived
/// before the end may keep `work` busy for as long as `rest`.
pub(crate) async fn attend<T>(
    connection: &CmConnection<Endpoint>,
    interrupt: &Interrupt,
    rest: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Stop> {
    let mut work = pin!(work);
    let ending = tokio::select! {
        biased;
        done = work.as_mut() => match done {
            Ok(done) => return Ok(done),
            Err(failure) => return Err(reason(connection, failure).await),
        },
        () = interrupt.wait() => return Err(Stop::Interrupted),
        Ok(ending) = connection.closed(Deadline::Never) => ending,
    };
    match timeout(rest, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(failure @ Failure::Peer(_))) => Err(Stop::Failed(failure)),
        Ok(Err(_)) | Err(_) => Err(Stop::Ended(ending)),
    }
}

/// The reason behind a failure: where the peer has gone, that is it.
async fn reason(connection: &CmConnection<Endpoint>, failure: Failure) -> Stop {
    let patience = match failure {
        Failure::Over => CLOSE_DEADLINE,
        Failure::Request(_) | Failure::Post(_) => DEPARTURE,
        Failure::Verbs(_) | Failure::Peer(_) => return Stop::Failed(failure),
    };
    let ended = connection.closed(patience).await;
    ended.map_or(Stop::Failed(failure), Stop::Ended)
}
