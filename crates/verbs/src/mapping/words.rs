//! Words that this process and the kernel read and write.
//!
//! # Safety
//! A part of the module with `unsafe` for mapped memory.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::{MappedMemory, Mapping};

/// Memory of 32-bit words that this process and the kernel read and write.
#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    /// The words of a mapping.
    #[must_use]
    pub(crate) fn new(mapping: Mapping) -> Self {
        Self(mapping)
    }

    /// The word at `offset`; `None` if it is not aligned or beyond the end.
    #[must_use]
    pub(crate) fn word(&self, offset: usize) -> Option<Word> {
        let word: NonNull<AtomicU32> = self.0.pointer(offset, size_of::<AtomicU32>())?.cast();
        word.is_aligned().then(|| Word {
            _memory: Arc::clone(&self.0.memory),
            word,
        })
    }
}

/// A 32-bit word that this process and the kernel read and write. Clones are the same word.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// Keeps the word mapped.
    _memory: Arc<MappedMemory>,
    word: NonNull<AtomicU32>,
}

// SAFETY: it refers to an atomic in a mapping, which any thread may use and which the value
// keeps mapped.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word. The kernel accesses it with load-acquire and store-release.
    #[must_use]
    pub(crate) fn get(&self) -> &AtomicU32 {
        // SAFETY: aligned and within the mapping, which lives as long as `self`. This
        // process and the kernel access it only atomically: in this process only `Word`s
        // refer to those bytes.
        unsafe { self.word.as_ref() }
    }
}
