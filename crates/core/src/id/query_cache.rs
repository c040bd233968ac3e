//! The kernel's answers about an id, kept until something may have changed them.

use std::sync::{MutexGuard, PoisonError};

use super::query::{Addresses, Gids};
use super::state::IdState;
use crate::error::Result;
use crate::path::PathRecords;

/// Answers that hold until the id moves on.
#[derive(Debug, Default)]
pub(crate) struct QueryCache {
    /// Counts the moves, so that an answer the kernel gave before one is not
    /// kept after it.
    moves: u64,
    pub(super) addresses: Option<Addresses>,
    pub(super) gids: Option<Gids>,
    pub(super) paths: Option<PathRecords>,
}

impl IdState {
    /// Runs a command that moves the id on. A refused one may have done so too:
    /// the kernel binds an id before it looks for a route or listens.
    pub(super) fn moving_on(&self, command: impl FnOnce() -> Result<()>) -> Result<()> {
        let answer = command();
        self.forget_answers();
        answer
    }

    /// The id has moved on, or may have.
    pub(crate) fn forget_answers(&self) {
        let mut kept = self.kept();
        *kept = QueryCache {
            moves: kept.moves.wrapping_add(1),
            ..QueryCache::default()
        };
    }

    /// What `find` finds among the kept answers, or what `ask` gets from the
    /// kernel and `keep` puts there. The lock is not held while asking.
    pub(super) fn keep_or_ask<T: Copy>(
        &self,
        find: impl Fn(&QueryCache) -> Option<T>,
        ask: impl FnOnce() -> Result<T>,
        keep: impl FnOnce(&mut QueryCache, T),
    ) -> Result<T> {
        let moves = {
            let kept = self.kept();
            if let Some(answer) = find(&kept) {
                return Ok(answer);
            }
            kept.moves
        };
        let answer = ask()?;
        let mut kept = self.kept();
        if kept.moves == moves {
            keep(&mut kept, answer);
        }
        Ok(answer)
    }

    /// Replaced whole and never left half-written, so a panic elsewhere while it
    /// was locked leaves nothing broken.
    fn kept(&self) -> MutexGuard<'_, QueryCache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
