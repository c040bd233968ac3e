//! Queue pairs for connections without data.

use std::io;
use std::sync::Arc;

use rdmacm::core::{IdHandle, QueuePair};
use rdmacm_core::QpType;
use rdmacm_tests::{RecordingQueuePair, Site, Soft};
use rdmacm_verbs::Context;

/// A queue pair of either kind.
pub(crate) type AnyQueuePair = Arc<dyn QueuePair>;

/// Creates queue pairs for a site: real ones for siw, which connects no others, and
/// recording ones for rxe.
#[derive(Clone, Debug)]
pub(crate) struct QueuePairs(Option<Context>);

impl QueuePairs {
    pub(crate) fn new(site: &Site) -> Self {
        Self((site.soft == Soft::Siw).then(|| site.verbs()))
    }

    pub(crate) fn one(&self) -> AnyQueuePair {
        match &self.0 {
            Some(context) => Arc::new(
                rdmacm_verbs::QueuePair::options(QpType::RC)
                    .create(context)
                    .unwrap(),
            ),
            None => Arc::new(RecordingQueuePair::new()),
        }
    }
}

impl rdmacm::QueuePairFactory for QueuePairs {
    type QueuePair = AnyQueuePair;

    fn create(&self, _: &IdHandle) -> io::Result<AnyQueuePair> {
        Ok(self.one())
    }
}
