//! What a thread sleeps on.

use std::sync::PoisonError;

use crate::sync::{Condvar, CondvarMutex};

/// What one thread sleeps on until another one wakes it. A wake-up that comes before is not lost.
#[derive(Debug, Default)]
pub(super) struct Parker {
    is_woken: CondvarMutex<bool>,
    woken: Condvar,
}

impl Parker {
    pub(super) fn park(&self) {
        let mut is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_woken {
            let woken = self.woken.wait(is_woken);
            is_woken = woken.unwrap_or_else(PoisonError::into_inner);
        }
        *is_woken = false;
    }

    pub(super) fn unpark(&self) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }
}
