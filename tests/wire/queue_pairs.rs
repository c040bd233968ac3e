//! The queue pairs of this side.

use std::sync::{Mutex, PoisonError};

use rdmacm_core::{QpType, RdmaDevice};
use rdmacm_verbs::{Context, QueuePair};

/// None is ever used for data, and none goes before the program does: what
/// ends a connection is not to be its queue pair.
#[derive(Debug, Default)]
pub(crate) struct QueuePairs(Mutex<Vec<QueuePair>>);

impl QueuePairs {
    /// Makes one on a device; its number.
    pub(crate) fn make(&self, device: &str) -> u32 {
        let devices = RdmaDevice::list().unwrap();
        let device = devices.iter().find(|one| one.name == device).unwrap();
        let context = Context::open(device).unwrap();
        let queue_pair = QueuePair::options(QpType::RC).create(&context).unwrap();
        let number = queue_pair.number();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(queue_pair);
        number
    }
}
