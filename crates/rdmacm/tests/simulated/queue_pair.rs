//! Queue pairs that exist as numbers only.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rdmacm::QueuePairFactory;
use rdmacm::core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QueuePair, Transport};

/// Creates queue pairs of one transport, and counts those that were not dropped.
#[derive(Clone, Debug)]
pub(crate) struct QueuePairs {
    transport: Transport,
    live: Arc<AtomicUsize>,
}

impl QueuePairs {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            live: Arc::default(),
        }
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    pub(crate) fn queue_pair(&self) -> NumberedQp {
        static LAST: AtomicU32 = AtomicU32::new(16);
        self.live.fetch_add(1, Ordering::SeqCst);
        NumberedQp {
            number: LAST.fetch_add(1, Ordering::SeqCst) + 1,
            pairs: self.clone(),
        }
    }
}

impl QueuePairFactory for &QueuePairs {
    type QueuePair = NumberedQp;

    fn create(&self, _: &IdHandle) -> io::Result<NumberedQp> {
        Ok(self.queue_pair())
    }
}

/// A queue pair with a number of its own that accepts every modification.
#[derive(Debug)]
pub(crate) struct NumberedQp {
    number: u32,
    pairs: QueuePairs,
}

impl QueuePair for NumberedQp {
    fn number(&self) -> u32 {
        self.number
    }

    fn transport(&self) -> Transport {
        self.pairs.transport
    }

    fn depth_limits(&self) -> DepthLimits {
        DepthLimits {
            responder_resources: 16,
            initiator_depth: 16,
        }
    }

    fn modify(&self, _: &QpAttr, _: QpAttrMask) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NumberedQp {
    fn drop(&mut self) {
        self.pairs.live.fetch_sub(1, Ordering::SeqCst);
    }
}
