//! The queue pairs of this program.

use std::sync::{Mutex, PoisonError};

use rdmacm_core::{QpType, RdmaDevice};
use rdmacm_verbs::{Context, QueuePair};

/// Queue pairs that are never used for data and exist until the program ends, so that none of
/// them ends a connection.
#[derive(Debug, Default)]
pub(crate) struct QueuePairs(Mutex<Vec<QueuePair>>);

impl QueuePairs {
    /// Creates a queue pair on a device and returns its number.
    pub(crate) fn create(&self, device: &str) -> u32 {
        let devices = RdmaDevice::list().unwrap();
        let device = devices.iter().find(|one| one.name == device).unwrap();
        let context = Context::open(device).unwrap();
        let queue_pair = QueuePair::options(QpType::RC).create(&context).unwrap();
        let number = queue_pair.number();
        let mut queue_pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue_pairs.push(queue_pair);
        number
    }
}
