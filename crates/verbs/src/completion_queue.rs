//! Completion queues.

use std::sync::Arc;

use rdmacm_abi::uverbs::{CommandNumber, CreateCq, DestroyCq};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::operation::Operation;

/// A completion queue, where queue pairs report what they have done. Clones
/// are the same queue; the kernel's goes when they and the queue pairs that
/// use it are gone.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_cq")]
pub struct CompletionQueue(Arc<Created>);

#[derive(Debug)]
struct Created {
    context: Context,
    handle: u32,
    entries: u32,
}

impl CompletionQueue {
    pub(crate) fn create(context: &Context, entries: u32) -> Result<Self> {
        let operation = Operation::CreateCompletionQueue { entries };
        let answer = context
            .uverbs()
            .create_cq(operation, CreateCq::new(entries))?;
        let queue = Self(Arc::new(Created {
            context: context.clone(),
            handle: answer.handle,
            entries: answer.entries,
        }));
        if answer.entries < entries {
            let what = "a queue smaller than asked for";
            return Err(Error::answer(operation, CommandNumber::CREATE_CQ, what));
        }
        Ok(queue)
    }

    /// The device it was made on.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// How many completions it holds: as many as asked for, or more.
    #[must_use]
    #[doc(alias = "cqe")]
    pub fn entries(&self) -> u32 {
        self.0.entries
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.context.uverbs().destroy(&DestroyCq::new(self.handle));
    }
}
