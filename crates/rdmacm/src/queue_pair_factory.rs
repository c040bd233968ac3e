//! Creating queue pairs for connections.

use std::io;

use rdmacm_core::{IdHandle, QueuePair};

/// Creates queue pairs for connections. A function from an id to a queue pair is one.
///
/// The id is attached to a device: [`IdHandle::addresses`] says which, and by which port. Each
/// attempt to connect needs a new queue pair, because on iWARP a queue pair can be used for one
/// attempt only.
pub trait QueuePairFactory: Send + Sync {
    /// The type of the queue pairs.
    type QueuePair: QueuePair + 'static;

    /// Creates a queue pair on the id's device: for a connecting id, while the kernel resolves its
    /// route.
    ///
    /// # Errors
    /// Why there is none. The attempt to connect or accept fails with it.
    fn create(&self, id: &IdHandle) -> io::Result<Self::QueuePair>;
}

impl<Q, F> QueuePairFactory for F
where
    Q: QueuePair + 'static,
    F: Fn(&IdHandle) -> io::Result<Q> + Send + Sync,
{
    type QueuePair = Q;

    fn create(&self, id: &IdHandle) -> io::Result<Q> {
        self(id)
    }
}
