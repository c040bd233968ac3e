//! rxe's completion queues.

use rdmacm_abi::uverbs::{ResizeCq, Rxe, WorkCompletion};
use zerocopy::FromZeros;

use super::Queue;
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{CompletionHint, CompletionRing, Uverbs};

/// Slots hold the kernel's own [`WorkCompletion`].
impl CompletionRing for Queue<WorkCompletion> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "only what is of use is read")]
    fn oldest(&self) -> Option<(u32, WorkCompletion)> {
        let place = self.oldest_slot()?;
        let mut completion = WorkCompletion::new_zeroed();
        self.slots().slot(place).read(0, &mut completion);
        Some((place, completion))
    }

    fn hint(&self) -> Option<CompletionHint> {
        Some(CompletionHint::Indices(self.indices()))
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        self.consume(place);
    }

    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        let answer = uverbs.ask(operation, &Rxe(ResizeCq::new(queue, entries)))?;
        // The driver has moved the completions to the new memory. The old memory is
        // unmapped when it is replaced here, but for that of the hint.
        let resized = Self::map(uverbs, operation, answer.queue);
        *self = resized.inspect_err(|_| {
            // The driver writes completions to a queue that cannot be read.
            uverbs.close();
        })?;
        Ok(())
    }
}
