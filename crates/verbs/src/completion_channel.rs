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

/// A channel for notifications of completion queues. Clones are the same channel.
///
/// Its descriptor, for event loops, is readable while there is a notification to
/// [`take`](Self::take), and when the device is gone.
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
        Self::with_file(context, file)
    }

    /// With a file to which the kernel or a test writes notifications.
    pub(crate) fn with_file(context: &Context, file: Arc<RevocableFile>) -> Result<Self> {
        Ok(Self(Arc::new(Created {
            readable: Readable::new(context, Arc::clone(&file))?,
            file,
            queues: AtomicUsize::new(0),
        })))
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.readable.context()
    }

    /// Takes one notification, if there is one: the [token](crate::CompletionQueue::token) of
    /// an armed queue that has a completion.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) if the device is gone.
    #[doc(alias = "ibv_get_cq_event")]
    pub fn take(&self) -> Result<Option<Token>> {
        let event: Option<CompletionEvent> = self.0.readable.read()?;
        Ok(event.and_then(|event| Token::from_handle(event.user_handle)))
    }

    /// Waits for the next notification and takes it; `None` if the deadline passes.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) if the device is gone.
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

    /// Duplicates the kernel's descriptor, for use in a command.
    pub(crate) fn duplicate(&self) -> Result<File> {
        let duplicate = self.0.file.with(File::try_clone);
        duplicate
            .ok_or_else(|| self.context().gone())?
            .map_err(|error| Error::wait(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// How many completion queues use it.
    pub(crate) fn queues(&self) -> usize {
        self.0.queues.load(Ordering::Acquire)
    }

    pub(crate) fn add_queue(&self) {
        self.0.queues.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_queue(&self) {
        self.0.queues.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.readable.as_fd()
    }
}
