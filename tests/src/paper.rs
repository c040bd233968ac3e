//! Queue pairs that are only on paper.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};

use crate::site::free_qp_number;

/// A number that no hardware knows, which is enough for rxe to connect, and a
/// record of where it was moved.
#[derive(Debug)]
pub struct PaperQueuePair {
    number: u32,
    moves: Mutex<Vec<(QpState, QpAttrMask)>>,
}

impl PaperQueuePair {
    /// One with a number of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Self {
        Self {
            number: free_qp_number(),
            moves: Mutex::default(),
        }
    }

    /// Where it was moved so far, with the masks.
    pub fn moves(&self) -> Vec<(QpState, QpAttrMask)> {
        self.moves.lock().unwrap().clone()
    }
}

impl QueuePair for PaperQueuePair {
    fn number(&self) -> u32 {
        self.number
    }

    fn transport(&self) -> Transport {
        Transport::RoCE
    }

    fn depth_limits(&self) -> DepthLimits {
        DepthLimits {
            responder_resources: 16,
            initiator_depth: 16,
        }
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        self.moves.lock().unwrap().push((attr.qp_state, mask));
        Ok(())
    }
}
