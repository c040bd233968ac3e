//! Why data do not move.

use rdmacm_verbs::{CompletionError, Error, PostError};

/// Why a side cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was posted came back undone: the connection is over.
    #[error("the connection is over")]
    Over,
    /// The device or the kernel refused something.
    #[error(transparent)]
    Verbs(Error),
    /// A request was not taken.
    #[error(transparent)]
    Post(Error),
    /// A request failed.
    #[error(transparent)]
    Request(CompletionError),
    /// The peer does not keep to the protocol, or returned something else than
    /// it was given.
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
