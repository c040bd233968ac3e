//! Queue pairs that carry nothing: numbers, and on iWARP real ones, which the kernel asks for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use rdmacm::QueuePairFactory;
use rdmacm::core::{
    DepthLimits, DeviceId, IdHandle, QpAttr, QpAttrMask, QpState, QueuePair, RdmaDevices, Transport,
};
use rdmacm::verbs::{self, DeviceSource};
use rdmacm_sim::Host;

/// Creates queue pairs of one transport, and counts those that were not dropped.
#[derive(Clone, Debug)]
pub(crate) struct QueuePairs {
    transport: Transport,
    /// The host of iWARP's queue pairs.
    host: Option<Host>,
    live: Arc<AtomicUsize>,
    /// The next one that is moved to ERR panics.
    panics: Arc<AtomicBool>,
}

impl QueuePairs {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            host: None,
            live: Arc::default(),
            panics: Arc::default(),
        }
    }

    /// One of them panics when it is moved to ERR next.
    pub(crate) fn panic_next(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    /// The same, with the queue pairs on this host.
    pub(crate) fn on(&self, host: &Host) -> Self {
        Self {
            host: Some(host.clone()),
            ..self.clone()
        }
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    fn number(&self) -> NumberedQp {
        static LAST: AtomicU32 = AtomicU32::new(16);
        self.live.fetch_add(1, Ordering::SeqCst);
        NumberedQp {
            number: LAST.fetch_add(1, Ordering::SeqCst) + 1,
            device: None,
            pairs: self.clone(),
        }
    }

    fn iwarp(&self, host: &Host, id: &IdHandle) -> io::Result<NumberedQp> {
        let device = host.list()?.remove(0);
        let device = DeviceId {
            index: device.index,
            guid: device.guid,
        };
        let context = DeviceSource::open(host, device)?;
        let queue_pair = verbs::QueuePair::options(id.qp_type()).create(&context)?;
        self.live.fetch_add(1, Ordering::SeqCst);
        Ok(NumberedQp {
            number: queue_pair.number(),
            device: Some(queue_pair),
            pairs: self.clone(),
        })
    }
}

impl QueuePairFactory for &QueuePairs {
    type QueuePair = NumberedQp;

    fn create(&self, id: &IdHandle) -> io::Result<NumberedQp> {
        match &self.host {
            Some(host) if self.transport == Transport::IWarp => self.iwarp(host, id),
            _ => Ok(self.number()),
        }
    }
}

/// A queue pair with a number of its own that accepts every modification.
#[derive(Debug)]
pub(crate) struct NumberedQp {
    number: u32,
    /// That of iWARP.
    device: Option<verbs::QueuePair>,
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

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let is_last = attr.qp_state == QpState::ERR;
        assert!(!is_last || !self.pairs.panics.swap(false, Ordering::SeqCst));
        match &self.device {
            Some(queue_pair) => QueuePair::modify(queue_pair, attr, mask),
            None => Ok(()),
        }
    }
}

impl Drop for NumberedQp {
    fn drop(&mut self) {
        self.pairs.live.fetch_sub(1, Ordering::SeqCst);
    }
}
