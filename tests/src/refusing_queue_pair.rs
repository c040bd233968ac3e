//! Queue pairs that fail to move to a state.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};

/// How a [`RefusingQueuePair`] fails.
#[must_use]
pub fn refusal() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the firmware refused")
}

/// A queue pair that fails to move to one state, and records the others that it moves to.
#[derive(Debug)]
pub struct RefusingQueuePair<Q> {
    queue_pair: Q,
    refused: QpState,
    states: Mutex<Vec<QpState>>,
}

impl<Q: QueuePair> RefusingQueuePair<Q> {
    /// This queue pair, which fails to move to this state from now on.
    #[must_use]
    pub fn new(queue_pair: Q, refused: QpState) -> Self {
        Self {
            queue_pair,
            refused,
            states: Mutex::default(),
        }
    }

    /// The last state that it has moved to.
    pub fn last_state(&self) -> Option<QpState> {
        self.states.lock().unwrap().last().copied()
    }
}

impl<Q: QueuePair> QueuePair for RefusingQueuePair<Q> {
    fn number(&self) -> u32 {
        self.queue_pair.number()
    }

    fn transport(&self) -> Transport {
        self.queue_pair.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.queue_pair.depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        if attr.qp_state == self.refused {
            return Err(refusal());
        }
        self.queue_pair.modify(attr, mask)?;
        self.states.lock().unwrap().push(attr.qp_state);
        Ok(())
    }
}
