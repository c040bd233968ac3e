//! Completion channels.

use std::fs::File;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use rdmacm_abi::uverbs::CompletionEvent;
use rdmacm_core::Deadline;

use crate::context::Context;
use crate::error::Result;
use crate::readable::Readable;
use crate::revocable_file::RevocableFile;
use crate::token::Token;

/// A channel for notifications of completion queues. Clones are the same channel.
///
/// An event loop watches its [`readiness`](Self::readiness).
#[derive(Clone, Debug)]
#[doc(alias = "ibv_comp_channel", alias = "ibv_destroy_comp_channel")]
pub struct CompletionChannel(Arc<Created>);

#[derive(Debug)]
struct Created {
    readable: Readable,
    file: Arc<RevocableFile>,
    queues: AtomicUsize,
    /// Its only queue is armed, or its notification was not taken yet.
    is_notification_due: AtomicBool,
}

impl PartialEq for CompletionChannel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CompletionChannel {}

impl CompletionChannel {
    pub(crate) fn create(context: &Context) -> Result<Self> {
        let file = context.uverbs().create_completion_channel()?;
        Ok(Self::with_file(context, file))
    }

    /// With a file to which the kernel or a test writes notifications.
    pub(crate) fn with_file(context: &Context, file: Arc<RevocableFile>) -> Self {
        Self(Arc::new(Created {
            readable: Readable::new(context, Arc::clone(&file)),
            file,
            queues: AtomicUsize::new(0),
            is_notification_due: AtomicBool::new(false),
        }))
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.readable.context()
    }

    /// A descriptor to poll, readable while [`try_next`](Self::try_next) has a notification to
    /// return, and once the context is closed. It cannot be read. The first call opens it.
    ///
    /// # Errors
    /// [`Error::Wait`](crate::Error::Wait) if the process cannot open it;
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    pub fn readiness(&self) -> Result<BorrowedFd<'_>> {
        self.0.readable.readiness()
    }

    /// Returns the next notification without waiting: the
    /// [token](crate::CompletionQueue::token) of an armed queue that has a completion.
    ///
    /// A `None` right after a notification may miss the device's removal, which edge-triggered
    /// epoll reports only once. So with `EPOLLET`, which tokio's `AsyncFd` uses, call it until it
    /// has returned `None` twice in a row.
    /// Source: `ibv_get_cq_event(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    #[doc(alias = "ibv_get_cq_event", alias = "ibv_ack_cq_events")]
    pub fn try_next(&self) -> Result<Option<Token>> {
        // Before reading: a queue that is armed once too often does no harm.
        self.clear_notification_due();
        let event: Option<CompletionEvent> = self.0.readable.read()?;
        if event.is_some() {
            // It may be of a queue that was armed since then.
            self.clear_notification_due();
        }
        Ok(event.map(|event| Token::new(event.user_handle)))
    }

    /// Waits for the next notification and takes it; `None` if the deadline passes.
    /// Source: `ibv_get_cq_event(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    #[doc(alias = "ibv_get_cq_event", alias = "ibv_ack_cq_events")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<Token>> {
        let until = deadline.into().until(Instant::now());
        loop {
            if let Some(token) = self.try_next()? {
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

    /// Whether its only queue need not be armed to be waited for. Otherwise notifications
    /// that nobody reads would pile up in the kernel.
    pub(crate) fn is_notification_due(&self) -> bool {
        self.0.is_notification_due.load(Ordering::Acquire)
    }

    pub(crate) fn set_notification_due(&self) {
        self.0.is_notification_due.store(true, Ordering::Release);
    }

    pub(crate) fn clear_notification_due(&self) {
        self.0.is_notification_due.store(false, Ordering::Release);
    }

    /// The number of the kernel's descriptor, for a command of its context. It names this
    /// channel as long as the command can be sent: a context that is closed sends none, and
    /// closes its channels after that.
    pub(crate) fn number(&self) -> Result<RawFd> {
        if self.context().is_in_child() {
            // A thread of the parent may have been closing it at the fork.
            return Err(self.context().closed_error());
        }
        let number = self.0.file.with(File::as_raw_fd);
        number.ok_or_else(|| self.context().closed_error())
    }

    /// How many completion queues use it.
    pub(crate) fn queues(&self) -> usize {
        self.0.queues.load(Ordering::Acquire)
    }

    pub(crate) fn add_queue(&self) {
        self.0.queues.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_queue(&self) {
        // The kernel discards the queue's notifications with it.
        self.clear_notification_due();
        self.0.queues.fetch_sub(1, Ordering::AcqRel);
    }
}
