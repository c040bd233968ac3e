//! rxe's completion queues.

use rdmacm_abi::uverbs::rxe::MapInfo;
use rdmacm_abi::uverbs::{ResizeCq, Rxe, WorkCompletion};

use super::Queue;
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{CompletionRing, Uverbs};

/// A completion queue: slots hold the kernel's own [`WorkCompletion`].
#[derive(Debug)]
pub(super) struct Completions(Queue);

impl Completions {
    pub(super) fn map(uverbs: &Uverbs, operation: Operation, info: MapInfo) -> Result<Self> {
        let queue = super::map(uverbs, operation, info)?;
        super::holds::<WorkCompletion>(&queue, operation)?;
        Ok(Self(queue))
    }
}

impl CompletionRing for Completions {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn pop(&mut self) -> Option<WorkCompletion> {
        let slot = self.0.oldest()?;
        let completion = self.0.slots().read(slot, 0);
        self.0.consume(slot);
        Some(completion)
    }

    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        let answer = uverbs.ask(operation, &Rxe(ResizeCq::new(queue, entries)))?;
        // The driver has moved what was there to the new memory, and the old is
        // unmapped when this is replaced.
        let resized = Self::map(uverbs, operation, answer.queue);
        *self = resized.inspect_err(|_| {
            // The driver reports to a queue that nobody has now.
            uverbs.close();
        })?;
        Ok(())
    }
}
