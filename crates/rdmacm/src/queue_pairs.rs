//! Where queue pairs come from.

use std::io;

use rdmacm_core::{IdHandle, QueuePair};

/// Makes queue pairs for connections. Any function from an id to a queue pair
/// is one.
///
/// The id is attached to a device: [`IdHandle::addresses`] says which, and by
/// which port. Each attempt to connect takes a new queue pair, because iWARP
/// takes a queue pair for good.
pub trait QueuePairs: Send + Sync {
    /// What it makes.
    type QueuePair: QueuePair + 'static;

    /// A queue pair on the id's device.
    ///
    /// # Errors
    /// Whatever stands in the way; the attempt ends with it.
    fn make(&self, id: &IdHandle) -> io::Result<Self::QueuePair>;
}

impl<Q, F> QueuePairs for F
where
    Q: QueuePair + 'static,
    F: Fn(&IdHandle) -> io::Result<Q> + Send + Sync,
{
    type QueuePair = Q;

    fn make(&self, id: &IdHandle) -> io::Result<Q> {
        self(id)
    }
}
