//! How many objects there are.

use super::Verbs;

/// How many objects of verbs exist, so that a test finds those that a program has not
/// destroyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerbsObjects {
    /// Open contexts.
    pub contexts: usize,
    /// Protection domains.
    pub protection_domains: usize,
    /// Registered memory regions.
    pub memory_regions: usize,
    /// Completion channels whose descriptor is open, or that have a completion queue.
    pub completion_channels: usize,
    /// Completion queues.
    pub completion_queues: usize,
    /// Shared receive queues.
    pub shared_receive_queues: usize,
    /// Queue pairs.
    pub queue_pairs: usize,
}

impl Verbs {
    /// Adds the objects of this device.
    pub(crate) fn count(&self, objects: &mut VerbsObjects) {
        objects.contexts += self.contexts.len();
        objects.protection_domains += self.domains.len();
        objects.memory_regions += self.regions.len();
        objects.completion_channels += self.channels_in_use();
        objects.completion_queues += self.completion_queues.len();
        objects.shared_receive_queues += self.shared_receive_queues.len();
        objects.queue_pairs += self.queue_pairs.len();
    }
}
