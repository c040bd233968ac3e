//! The channels that listeners were on before they migrated to a channel.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

/// The channels that listeners were on before they migrated to this one, the latest last.
/// Children of connect requests that moved with them are there.
#[derive(Debug)]
pub(crate) struct RequestSources<C> {
    /// How many were ever recorded: most channels have none, and their readers take no lock.
    recorded: AtomicUsize,
    known: Mutex<Vec<Weak<C>>>,
}

/// The request sources of a channel, kept open while one of its readers reads an event: when
/// the file of a source is closed, the kernel may give the numbers of its children to other ids.
pub(crate) struct HeldSources<C>(Option<Box<Held<C>>>);

/// Those of a channel that has had any.
struct Held<C> {
    recorded: usize,
    channels: Vec<Arc<C>>,
}

impl<C> HeldSources<C> {
    /// The channels, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = &Arc<C>> {
        self.0.iter().flat_map(|held| held.channels.iter().rev())
    }
}

impl<C> RequestSources<C> {
    /// Records channels, given with the latest first.
    pub(super) fn record(&self, sources: &[Arc<C>]) {
        let mut known = self.known();
        known.retain(|one| one.strong_count() > 0);
        for source in sources.iter().rev().map(Arc::downgrade) {
            known.retain(|one| !one.ptr_eq(&source));
            known.push(source);
        }
        self.recorded.fetch_add(sources.len(), Ordering::Release);
    }

    /// Keeps the sources open.
    #[inline]
    pub(crate) fn hold(&self) -> HeldSources<C> {
        if self.recorded.load(Ordering::Acquire) != 0 {
            return self.hold_known();
        }
        HeldSources(None)
    }

    #[cold]
    fn hold_known(&self) -> HeldSources<C> {
        let known = self.known();
        HeldSources(Some(Box::new(Held {
            recorded: self.recorded.load(Ordering::Acquire),
            channels: known.iter().filter_map(Weak::upgrade).collect(),
        })))
    }

    /// Whether no source has been recorded since these were.
    pub(super) fn are_all(&self, held: &HeldSources<C>) -> bool {
        let then = held.0.as_ref().map_or(0, |held| held.recorded);
        self.recorded.load(Ordering::Acquire) == then
    }

    fn known(&self) -> MutexGuard<'_, Vec<Weak<C>>> {
        self.known.lock()
    }
}

impl<C> Default for RequestSources<C> {
    fn default() -> Self {
        Self {
            recorded: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }
}
