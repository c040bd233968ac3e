//! Our ends of connections.

use std::io;
use std::sync::{Mutex, PoisonError};

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};
use rdmacm_tests::{Site, Soft, free_qp_number};

/// A queue pair that connects and moves no data.
#[derive(Debug)]
pub(super) enum End {
    MadeUp(MadeUp),
    Real(rdmacm_verbs::QueuePair),
}

/// A number, and what the queue pair of that number would have been told.
#[derive(Debug)]
pub(super) struct MadeUp {
    number: u32,
    moves: Mutex<Moves>,
}

#[derive(Clone, Debug, Default)]
struct Moves {
    states: Vec<QpState>,
    peer: Option<u32>,
}

impl End {
    pub(super) fn new(site: &Site) -> Self {
        match site.soft {
            Soft::Rxe => Self::MadeUp(MadeUp {
                number: free_qp_number(),
                moves: Mutex::default(),
            }),
            Soft::Siw => Self::Real(site.queue_pair()),
        }
    }

    /// It was led to RTS, towards this queue pair of the peer's. siw leads its
    /// queue pairs itself.
    pub(super) fn check_connected_to(&self, peer: u32) {
        let Self::MadeUp(this) = self else { return };
        let moves = this.moves();
        let in_order = [QpState::INIT, QpState::RTR, QpState::RTS];
        let mut states = moves.states;
        states.dedup();
        assert_eq!(states, in_order);
        assert_eq!(moves.peer, Some(peer));
    }

    /// Its connection is over, and it knows.
    pub(super) fn check_parted(&self) {
        let Self::MadeUp(this) = self else { return };
        assert_eq!(this.moves().states.last(), Some(&QpState::ERR));
    }

    fn inner(&self) -> &dyn QueuePair {
        match self {
            Self::MadeUp(this) => this,
            Self::Real(this) => this,
        }
    }
}

impl MadeUp {
    fn moves(&self) -> Moves {
        let moves = self.moves.lock();
        moves.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl QueuePair for End {
    fn number(&self) -> u32 {
        QueuePair::number(self.inner())
    }

    fn transport(&self) -> Transport {
        self.inner().transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.inner().depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        self.inner().modify(attr, mask)
    }
}

impl QueuePair for MadeUp {
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
        let moves = self.moves.lock();
        let mut moves = moves.unwrap_or_else(PoisonError::into_inner);
        assert!(mask.contains(QpAttrMask::STATE), "{mask:?}");
        moves.states.push(attr.qp_state);
        if mask.contains(QpAttrMask::DEST_QPN) {
            moves.peer = Some(attr.destination_qp_number);
        }
        Ok(())
    }
}
