//! Queue pairs that carry messages.

use std::io;
use std::sync::{Arc, Weak};

use rdmacm_core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QpType, Transport};
use rdmacm_verbs::ProtectionDomain;

use crate::hub::Hub;
use crate::queue_pairs::QueuePairs;

mod device;
mod failed;
mod fault;
mod loan;
mod message;
mod options;
mod places;
mod state;
mod traffic;
mod waiters;

pub use failed::Failed;
pub use loan::Loan;
pub use message::Message;
pub use options::MessageOptions;

pub(crate) use device::{Drained, OpenDevice};
pub(crate) use fault::Fault;
pub(crate) use loan::returned;
pub(crate) use places::{
    Arrivals, Line, Load, Outcome, Over, Quiet, Room, Trouble, UntilDeparture,
};
pub(crate) use state::Arrival;
pub(crate) use traffic::{Destination, Traffic};
pub(crate) use waiters::Interest;

/// The queue pair of a [connection](crate::Connection) that carries messages,
/// with registered memory to send from and to receive into.
///
/// It has a protection domain of its own: no peer but this one reaches memory
/// that is exposed in it.
#[derive(Debug)]
pub struct Messages {
    traffic: Arc<Traffic>,
}

impl Messages {
    /// What it was made for.
    #[must_use]
    pub fn options(&self) -> MessageOptions {
        self.traffic.options()
    }

    /// The domain that memory for its requests is registered in.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        self.traffic.protection_domain()
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

impl rdmacm_core::QueuePair for Messages {
    fn number(&self) -> u32 {
        self.traffic.queue_pair().number()
    }

    fn transport(&self) -> Transport {
        self.traffic.queue_pair().transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.traffic.queue_pair().depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        rdmacm_core::QueuePair::modify(self.traffic.queue_pair(), attr, mask)
    }
}

/// Makes them, with everything posted that the peer's first messages need.
#[derive(Debug)]
pub(crate) struct Maker {
    hub: Weak<Hub>,
    options: MessageOptions,
}

impl Maker {
    pub(crate) fn new(hub: &Arc<Hub>, options: MessageOptions) -> Self {
        Self {
            hub: Arc::downgrade(hub),
            options,
        }
    }
}

impl QueuePairs for Maker {
    type QueuePair = Messages;

    fn make(&self, id: &IdHandle) -> io::Result<Messages> {
        self.options.check()?;
        let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
        let hub = self.hub.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        let device = hub.open_device(device)?;
        let traffic = Traffic::new(&device, QpType::RC, self.options)?;
        let messages = Messages { traffic };
        id.with_queue_pair(&messages).init()?;
        messages.traffic.post_all()?;
        Ok(messages)
    }
}
