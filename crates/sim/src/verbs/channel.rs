//! Completion channels.

use std::collections::BTreeSet;

use super::Verbs;
use super::event_stream::{EventStream, StreamId};

/// A completion channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) context: u64,
    pub(super) events: EventStream,
}

impl Verbs {
    /// How many channels there are for a program.
    pub(super) fn channels_in_use(&self) -> usize {
        self.channels.len() - self.closed_channels().len()
    }

    /// Frees the channels that the kernel has freed by now: it does so with the last descriptor
    /// and the last queue, and no command says that a descriptor is closed.
    pub(super) fn free_closed_channels(&mut self) {
        for id in self.closed_channels() {
            self.channels.remove(&id);
        }
    }

    fn closed_channels(&self) -> Vec<StreamId> {
        let queues = self.completion_queues.values();
        let used: BTreeSet<_> = queues.filter_map(|queue| queue.channel).collect();
        let channels = self.channels.iter();
        let closed = channels.filter(|(id, one)| !used.contains(id) && one.events.is_closed());
        closed.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use rdmacm_core::{DeviceId, QpType, RdmaDevices};
    use rdmacm_verbs::{DeviceSource, QueuePair};

    use super::*;
    use crate::Fabric;
    use crate::verbs::completion_queue::{Armed, CompletionQueue, CompletionRing};
    use crate::verbs::ring::RingMemory;

    #[test]
    fn a_channel_is_kept_for_its_descriptor_and_its_queues() {
        const HANDLE: u32 = 17;
        let mut verbs = Verbs::default();
        let (events, id, descriptor) = EventStream::new().unwrap();
        verbs.channels.insert(id, Channel { context: 1, events });
        let ring = RingMemory::new().unwrap().ring(1, 64).unwrap();
        let armed = Armed::None;
        let queue = CompletionQueue {
            context: 1,
            user_handle: 0,
            ring: CompletionRing::Rxe { ring, armed },
            channel: Some(id),
        };
        assert_eq!(verbs.channels_in_use(), 1);
        verbs.completion_queues.insert(HANDLE, queue);
        drop(descriptor);
        verbs.free_closed_channels();
        assert_eq!(verbs.channels_in_use(), 1);
        verbs.completion_queues.clear();
        assert_eq!((verbs.channels_in_use(), verbs.channels.len()), (0, 1));
        verbs.free_closed_channels();
        assert!(verbs.channels.is_empty());
    }

    #[test]
    fn queue_pairs_that_are_gone_leave_no_descriptors() {
        let host = Fabric::roce(["host"]).find_host("host").unwrap();
        let device = host.list().unwrap().remove(0);
        let id = DeviceId {
            index: device.index,
            guid: device.guid,
        };
        let context = DeviceSource::open(&host, id).unwrap();
        let options = QueuePair::options(QpType::RC).with_completion_channels();
        let create = || options.create(&context).unwrap();
        let channels = || host.with_state(|host| host.devices[0].verbs.channels.len());
        let kept = create();
        let most = channels().map(|each| 2 * each);
        for _ in 0..5 {
            drop(create());
            assert!(channels() <= most);
        }
        drop(kept);
    }
}
