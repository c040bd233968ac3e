//! Completion channels.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rdmacm_abi::uverbs::CompletionEvent;
use rdmacm_core::Deadline;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::readable::Readable;
use crate::revocable_file::RevocableFile;
use crate::token::Token;

/// A descriptor on which completion queues tell that they have something. Clones
/// are the same channel.
///
/// Its descriptor, for event loops, is readable while there is something to
/// [`take`](Self::take), and when the device has gone.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_comp_channel")]
pub struct CompletionChannel(Arc<Created>);

#[derive(Debug)]
struct Created {
    readable: Readable,
    file: Arc<RevocableFile>,
    queues: AtomicUsize,
}

impl CompletionChannel {
    pub(crate) fn create(context: &Context) -> Result<Self> {
        let file = context.uverbs().create_completion_channel()?;
        Self::of(context, file)
    }

    /// One on whose file the kernel tells, or a test.
    pub(crate) fn of(context: &Context, file: Arc<RevocableFile>) -> Result<Self> {
        Ok(Self(Arc::new(Created {
            readable: Readable::new(context, Arc::clone(&file))?,
            file,
            queues: AtomicUsize::new(0),
        })))
    }

    /// The device it was made on.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.readable.context()
    }

    /// Takes one event, if there is one: the [token](crate::CompletionQueue::token)
    /// of a queue that was armed and has something.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) when the device has.
    #[doc(alias = "ibv_get_cq_event")]
    pub fn take(&self) -> Result<Option<Token>> {
        let event: Option<CompletionEvent> = self.0.readable.read()?;
        Ok(event.and_then(|event| Token::told(event.user_handle)))
    }

    /// Takes the next event, waited for until the deadline; `None` when it has
    /// come.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) when the device has.
    #[doc(alias = "ibv_get_cq_event")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<Token>> {
        let until = deadline.into().until(Instant::now());
        loop {
            if let Some(token) = self.take()? {
                return Ok(Some(token));
            }
            if !self.wait(until)? {
                return Ok(None);
            }
        }
    }

    pub(crate) fn wait(&self, until: Option<Instant>) -> Result<bool> {
        self.0.readable.wait(until)
    }

    /// The kernel's own descriptor once more, for a command to name.
    pub(crate) fn duplicate(&self) -> Result<File> {
        let duplicate = self.0.file.with(File::try_clone);
        duplicate
            .ok_or_else(|| self.context().gone())?
            .map_err(|error| Error::wait(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// How many queues have it.
    pub(crate) fn queues(&self) -> usize {
        self.0.queues.load(Ordering::Acquire)
    }

    pub(crate) fn join(&self) {
        self.0.queues.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn leave(&self) {
        self.0.queues.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.readable.as_fd()
    }
}
