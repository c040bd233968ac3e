//! Work on a connection, until it is done or cannot go on.

use std::fmt;
use std::future::Future;

use rdmacm::core::Deadline;
use rdmacm::tokio::Connection;
use rdmacm::{CLOSE_DEADLINE, Ending};

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Why work was not done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody asked this process to end.
    Interrupted,
    /// The peer parted, or was lost.
    Ended(Ending),
    /// It cannot be done.
    Failed(Failure),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Ended(ending) => match ending.failure() {
                Some(failure) => write!(f, "the connection ended: {failure}"),
                None => f.write_str("the peer parted"),
            },
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

/// Does `work` unless the connection ends before, or somebody interrupts.
pub(crate) async fn attend<T>(
    connection: &Connection<Endpoint>,
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Stop> {
    let failure = tokio::select! {
        biased;
        done = work => match done {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        },
        () = interrupt.wait() => return Err(Stop::Interrupted),
        Ok(ending) = connection.ended(Deadline::Never) => return Err(Stop::Ended(ending)),
    };
    match failure {
        // The reason is on its way.
        Failure::Over => match connection.ended(CLOSE_DEADLINE).await {
            Ok(ending) => Err(Stop::Ended(ending)),
            Err(_) => Err(Stop::Failed(failure)),
        },
        failure => Err(Stop::Failed(failure)),
    }
}
