//! The kernel's answers about an id, cached until they may have changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::id_addresses::{Addresses, Gids};
use crate::path::PathRecords;

/// The cache of one id.
#[derive(Debug, Default)]
pub(crate) struct QueryCache(Mutex<Entries>);

/// The cached answers.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Counts the invalidations, so that an answer that was requested before one is
    /// not stored after it.
    generation: u64,
    pub(crate) addresses: Option<Addresses>,
    pub(crate) gids: Option<Gids>,
    pub(crate) paths: Option<PathRecords>,
}

impl QueryCache {
    /// Drops all answers.
    pub(crate) fn invalidate(&self) {
        let mut entries = self.entries();
        *entries = Entries {
            generation: entries.generation.wrapping_add(1),
            ..Entries::default()
        };
    }

    /// Returns the cached answer that `get` selects. If there is none, calls `query`,
    /// without holding the lock, and caches its answer with `set`.
    pub(crate) fn get_or_query<T: Copy>(
        &self,
        get: impl Fn(&Entries) -> Option<T>,
        query: impl FnOnce() -> Result<T>,
        set: impl FnOnce(&mut Entries, T),
    ) -> Result<T> {
        let generation = {
            let entries = self.entries();
            if let Some(answer) = get(&entries) {
                return Ok(answer);
            }
            entries.generation
        };
        let answer = query()?;
        let mut entries = self.entries();
        if entries.generation == generation {
            set(&mut entries, answer);
        }
        Ok(answer)
    }

    /// Every change is one assignment, so a panic that poisons the lock leaves the
    /// entries valid.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
