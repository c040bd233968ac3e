//! The kernel's answers about an id, cached until they may have changed.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::error::Result;
use crate::id_addresses::{Addresses, Gids};
use crate::path::PathRecords;

/// The cache of one id. Dropping all answers is one addition, because almost every event does
/// it and few ids have answers.
#[derive(Debug, Default)]
pub(crate) struct QueryCache {
    /// Counts the invalidations.
    generation: AtomicU64,
    entries: Mutex<Option<Box<Entries>>>,
}

/// The cached answers.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// The generation in which these answers were requested; they are valid in no other.
    generation: u64,
    pub(crate) addresses: Option<Addresses>,
    pub(crate) gids: Option<Gids>,
    pub(crate) paths: Option<PathRecords>,
}

impl QueryCache {
    /// Drops all answers, also one that is being queried.
    pub(crate) fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Drops the path records, and what is being queried.
    pub(crate) fn invalidate_paths(&self) {
        let mut entries = self.entries();
        let generation = self.generation.fetch_add(1, Ordering::AcqRel);
        let entries = entries.as_deref_mut();
        if let Some(entries) = entries.filter(|entries| entries.generation == generation) {
            entries.generation = generation.wrapping_add(1);
            entries.paths = None;
        }
    }

    /// Returns the cached answer that `get` selects. If there is none, calls `query`,
    /// without holding the lock, and caches its answer with `set`.
    pub(crate) fn get_or_query<T: Copy>(
        &self,
        get: impl FnOnce(&Entries) -> Option<T>,
        query: impl FnOnce() -> Result<T>,
        set: impl FnOnce(&mut Entries, T),
    ) -> Result<T> {
        // Read before the query: an answer that is stored under this number is not valid
        // once someone has invalidated it meanwhile.
        let generation = self.generation.load(Ordering::Acquire);
        if let Some(answer) = self.cached(generation, get) {
            return Ok(answer);
        }
        let answer = query()?;
        let mut entries = self.entries();
        if self.generation.load(Ordering::Acquire) != generation {
            return Ok(answer);
        }
        let entries = entries.get_or_insert_default();
        if entries.generation != generation {
            **entries = Entries {
                generation,
                ..Entries::default()
            };
        }
        set(entries, answer);
        Ok(answer)
    }

    /// The cached answer that `get` selects.
    pub(crate) fn get<T>(&self, get: impl FnOnce(&Entries) -> Option<T>) -> Option<T> {
        self.cached(self.generation.load(Ordering::Acquire), get)
    }

    fn cached<T>(&self, generation: u64, get: impl FnOnce(&Entries) -> Option<T>) -> Option<T> {
        let entries = self.entries();
        let entries = entries.as_deref();
        let valid = entries.filter(|entries| entries.generation == generation);
        valid.and_then(get)
    }

    fn entries(&self) -> MutexGuard<'_, Option<Box<Entries>>> {
        self.entries.lock()
    }
}
