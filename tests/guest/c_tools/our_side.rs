//! This library's side of a connection with a tool.

use std::io;

use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QueuePair, Transport};
use rdmacm_tests::{RecordingQueuePair, Site, Soft};

/// A queue pair that connects and carries no data.
#[derive(Debug)]
pub(super) enum End {
    OnPaper(RecordingQueuePair),
    Real(Box<rdmacm_verbs::QueuePair>),
}

impl End {
    pub(super) fn new(site: &Site) -> Self {
        match site.soft {
            Soft::Rxe => Self::OnPaper(RecordingQueuePair::new()),
            Soft::Siw => Self::Real(Box::new(site.queue_pair())),
        }
    }

    /// Checks that it was moved to RTS with this queue pair as the peer, which may have
    /// disconnected since. siw moves its queue pairs itself.
    pub(super) fn check_connected_to(&self, peer: u32) {
        let Self::OnPaper(this) = self else { return };
        let in_order = [QpState::INIT, QpState::RTR, QpState::RTS];
        let mut states = this.states();
        states.dedup();
        states.truncate(in_order.len());
        assert_eq!(states, in_order);
        assert_eq!(this.peer(), Some(peer));
    }

    /// Disconnects, and reads the event.
    pub(super) fn check_parted(&self) {
        let Self::OnPaper(this) = self else { return };
        assert_eq!(this.states().last(), Some(&QpState::ERR));
    }

    fn inner(&self) -> &dyn QueuePair {
        match self {
            Self::OnPaper(this) => this,
            Self::Real(this) => &**this,
        }
    }
}

impl QueuePair for End {
    fn number(&self) -> u32 {
        self.inner().number()
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
