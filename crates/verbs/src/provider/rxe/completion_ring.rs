//! rxe's completion queues.

use rdmacm_abi::uverbs::{ResizeCq, Rxe, WorkCompletion};

use super::Queue;
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{CompletionRing, Uverbs};

/// Slots hold the kernel's own [`WorkCompletion`].
impl CompletionRing for Queue<WorkCompletion> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    fn pop(&mut self) -> Option<WorkCompletion> {
        let slot = self.oldest()?;
        let completion = self.slots().read(slot, 0);
        self.consume(slot);
        Some(completion)
    }

    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        let answer = uverbs.ask(operation, &Rxe(ResizeCq::new(queue, entries)))?;
        // The driver has moved the completions to the new memory. The old memory is
        // unmapped when it is replaced here.
        let resized = Self::map(uverbs, operation, answer.queue);
        *self = resized.inspect_err(|_| {
            // The driver writes completions to a queue that cannot be read.
            uverbs.close();
        })?;
        Ok(())
    }
}
