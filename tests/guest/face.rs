//! Connectors, listeners and connections.

use std::io;
use std::sync::Arc;

use rdmacm::core::{IdHandle, QueuePair};
use rdmacm_core::QpType;
use rdmacm_tests::{PaperQueuePair, Site, Soft};
use rdmacm_verbs::Context;

pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod deadlines;
pub(crate) mod migration;
pub(crate) mod several;

/// A queue pair of either kind.
type AnyQueuePair = Arc<dyn QueuePair>;

/// Makes queue pairs for a site: real ones for siw, which connects no other, and
/// on paper for rxe, which does.
#[derive(Clone, Debug)]
struct QueuePairs(Option<Context>);

impl QueuePairs {
    fn new(site: &Site) -> Self {
        Self((site.soft == Soft::Siw).then(|| site.verbs()))
    }

    fn one(&self) -> AnyQueuePair {
        match &self.0 {
            Some(context) => Arc::new(
                rdmacm_verbs::QueuePair::options(QpType::RC)
                    .create(context)
                    .unwrap(),
            ),
            None => Arc::new(PaperQueuePair::new()),
        }
    }
}

impl rdmacm::QueuePairs for QueuePairs {
    type QueuePair = AnyQueuePair;

    fn make(&self, _: &IdHandle) -> io::Result<AnyQueuePair> {
        Ok(self.one())
    }
}
