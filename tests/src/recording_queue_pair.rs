//! Queue pairs without hardware, which record their states.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};

use crate::site::free_qp_number;

/// A number that no hardware knows, which is enough for rxe to connect, and a
/// record of what the queue pair of that number would have been told.
#[derive(Debug)]
pub struct RecordingQueuePair {
    number: u32,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    states: Vec<QpState>,
    peer: Option<u32>,
}

impl RecordingQueuePair {
    /// One with a number of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Self {
        Self {
            number: free_qp_number(),
            told: Mutex::default(),
        }
    }

    /// The states it was moved to, in order.
    pub fn states(&self) -> Vec<QpState> {
        self.told.lock().unwrap().states.clone()
    }

    /// The number of the peer's queue pair, once it was told.
    pub fn peer(&self) -> Option<u32> {
        self.told.lock().unwrap().peer
    }
}

impl QueuePair for RecordingQueuePair {
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
        assert!(mask.contains(QpAttrMask::STATE), "{mask:?}");
        let mut told = self.told.lock().unwrap();
        told.states.push(attr.qp_state);
        if mask.contains(QpAttrMask::DEST_QPN) {
            told.peer = Some(attr.destination_qp_number);
        }
        Ok(())
    }
}
