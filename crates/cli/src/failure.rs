//! Errors of data transfer.

use std::io;
use std::time::Duration;

use rdmacm_verbs::{CompletionError, Error, PostError};

use crate::latencies::time;

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Requests were flushed because the connection ended.
    #[error("the connection is over")]
    Over,
    /// A verb failed.
    #[error(transparent)]
    Verbs(Error),
    /// Posting a request failed.
    #[error(transparent)]
    Post(Error),
    /// A request completed with an error.
    #[error(transparent)]
    Request(CompletionError),
    /// A stream failed.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// Nothing has arrived for so long.
    #[error("the peer has been silent for {}", time(.0.as_nanos()))]
    Silent(Duration),
    /// The peer violated the protocol or returned wrong data.
    #[error("{0}")]
    Peer(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Verbs(error)
    }
}

impl<T> From<PostError<T>> for Failure {
    fn from(refused: PostError<T>) -> Self {
        Self::Post(refused.error)
    }
}

impl From<CompletionError> for Failure {
    fn from(error: CompletionError) -> Self {
        if error.is_flush() {
            Self::Over
        } else {
            Self::Request(error)
        }
    }
}
