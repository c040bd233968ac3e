//! Queue pairs without hardware, which record their states.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};

use crate::site::free_qp_number;

/// A queue pair without hardware, whose number is enough for rxe to connect. It records
/// the states it is moved to.
#[derive(Debug)]
pub struct RecordingQueuePair {
    number: u32,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    states: Vec<QpState>,
    peer: Option<u32>,
}

impl RecordingQueuePair {
    /// Creates one with a number of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Self {
        Self {
            number: free_qp_number(),
            record: Mutex::default(),
        }
    }

    /// The states it was moved to, in order.
    pub fn states(&self) -> Vec<QpState> {
        self.record.lock().unwrap().states.clone()
    }

    /// The number of the peer's queue pair, once it is known.
    pub fn peer(&self) -> Option<u32> {
        self.record.lock().unwrap().peer
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
        let mut record = self.record.lock().unwrap();
        record.states.push(attr.qp_state);
        if mask.contains(QpAttrMask::DEST_QPN) {
            record.peer = Some(attr.destination_qp_number);
        }
        Ok(())
    }
}
