//! Asynchronous events.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rdmacm_abi::uverbs::{self, AsyncEventKind};
use rdmacm_core::Deadline;

use crate::context::Context;
use crate::error::Result;
use crate::readable::Readable;
use crate::token::Token;

/// The asynchronous events of a context's objects: a queue pair fails, a port goes down, a
/// shared receive queue reaches its limit. Each event is read once, by one reader.
///
/// Its descriptor, for event loops, is readable while there is an event for
/// [`try_next`](Self::try_next) to return, and once the context is closed.
#[derive(Debug)]
pub struct AsyncEvents(Readable);

/// An asynchronous event. Source: `ibv_get_async_event(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_async_event")]
pub struct AsyncEvent {
    /// Its kind.
    #[doc(alias = "event_type")]
    pub kind: AsyncEventKind,
    /// Its object.
    pub source: AsyncEventSource,
}

/// The object of an asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsyncEventSource {
    /// The queue pair with this token.
    QueuePair(Token),
    /// The completion queue with this token.
    CompletionQueue(Token),
    /// The shared receive queue with this token.
    SharedReceiveQueue(Token),
    /// The port with this number, from 1.
    Port(u64),
    /// The device.
    Device,
    /// The object of an unknown kind of event, with its number.
    Unknown(u64),
}

impl AsyncEvents {
    pub(crate) fn open(context: &Context) -> Result<Self> {
        let file = context.uverbs().async_events();
        let file = file.filter(|_| !context.is_closed());
        let file = file.ok_or_else(|| context.closed_error())?;
        Ok(Self(Readable::new(context, file)))
    }

    /// A descriptor to poll, readable while there is an event for
    /// [`try_next`](Self::try_next) to return, and once the context is closed. It cannot be read.
    /// The first call opens it.
    ///
    /// # Errors
    /// [`Error::Wait`](crate::Error::Wait) if the process cannot open it;
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    pub fn readiness(&self) -> Result<BorrowedFd<'_>> {
        self.0.readiness()
    }

    /// Takes one event, if there is one. With `EPOLLET`, call it until it has found none twice, see
    /// [`CompletionChannel::try_next`](crate::CompletionChannel::try_next).
    /// Source: `ibv_get_async_event(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    #[doc(alias = "ibv_get_async_event", alias = "ibv_ack_async_event")]
    pub fn try_next(&self) -> Result<Option<AsyncEvent>> {
        let event: Option<uverbs::AsyncEvent> = self.0.read()?;
        Ok(event.map(AsyncEvent::from))
    }

    /// Waits for the next event and takes it; `None` if the deadline passes.
    /// Source: `ibv_get_async_event(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    #[doc(alias = "ibv_get_async_event", alias = "ibv_ack_async_event")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<AsyncEvent>> {
        let until = deadline.into().until(Instant::now());
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(Some(event));
            }
            if !self.0.wait(until)? {
                return Ok(None);
            }
        }
    }
}

impl From<uverbs::AsyncEvent> for AsyncEvent {
    fn from(event: uverbs::AsyncEvent) -> Self {
        let unknown = AsyncEventSource::Unknown(event.element);
        let object = |source: fn(Token) -> AsyncEventSource| source(Token::new(event.element));
        let source = match event.kind {
            AsyncEventKind::CQ_ERR => object(AsyncEventSource::CompletionQueue),
            AsyncEventKind::SRQ_ERR | AsyncEventKind::SRQ_LIMIT_REACHED => {
                object(AsyncEventSource::SharedReceiveQueue)
            }
            AsyncEventKind::QP_FATAL
            | AsyncEventKind::QP_REQ_ERR
            | AsyncEventKind::QP_ACCESS_ERR
            | AsyncEventKind::QP_LAST_WQE_REACHED
            | AsyncEventKind::COMM_EST
            | AsyncEventKind::SQ_DRAINED
            | AsyncEventKind::PATH_MIG
            | AsyncEventKind::PATH_MIG_ERR => object(AsyncEventSource::QueuePair),
            AsyncEventKind::PORT_ACTIVE
            | AsyncEventKind::PORT_ERR
            | AsyncEventKind::LID_CHANGE
            | AsyncEventKind::PKEY_CHANGE
            | AsyncEventKind::SM_CHANGE
            | AsyncEventKind::CLIENT_REREGISTER
            | AsyncEventKind::GID_CHANGE => AsyncEventSource::Port(event.element),
            AsyncEventKind::DEVICE_FATAL => AsyncEventSource::Device,
            _ => unknown,
        };
        Self {
            kind: event.kind,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use rdmacm_abi::uverbs::AsyncEventKind as Kind;
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;
    use crate::provider::stub::Stub;
    use crate::readable;

    fn event(kind: Kind, element: u64) -> uverbs::AsyncEvent {
        uverbs::AsyncEvent {
            element,
            kind,
            ..uverbs::AsyncEvent::new_zeroed()
        }
    }

    #[test]
    fn each_kind_has_its_source() {
        let token = Token::new(7);
        for (kinds, source) in [
            (
                &[Kind::CQ_ERR][..],
                AsyncEventSource::CompletionQueue(token),
            ),
            (
                &[Kind::SRQ_ERR, Kind::SRQ_LIMIT_REACHED],
                AsyncEventSource::SharedReceiveQueue(token),
            ),
            (
                &[
                    Kind::QP_FATAL,
                    Kind::QP_REQ_ERR,
                    Kind::QP_ACCESS_ERR,
                    Kind::QP_LAST_WQE_REACHED,
                    Kind::COMM_EST,
                    Kind::SQ_DRAINED,
                    Kind::PATH_MIG,
                    Kind::PATH_MIG_ERR,
                ],
                AsyncEventSource::QueuePair(token),
            ),
            (
                &[
                    Kind::PORT_ACTIVE,
                    Kind::PORT_ERR,
                    Kind::LID_CHANGE,
                    Kind::PKEY_CHANGE,
                    Kind::SM_CHANGE,
                    Kind::CLIENT_REREGISTER,
                    Kind::GID_CHANGE,
                ],
                AsyncEventSource::Port(7),
            ),
            (&[Kind::DEVICE_FATAL], AsyncEventSource::Device),
            (&[Kind::new(99)], AsyncEventSource::Unknown(7)),
        ] {
            for kind in kinds {
                let event = AsyncEvent::from(event(*kind, 7));
                assert_eq!((event.kind, event.source), (*kind, source));
            }
        }
    }

    #[test]
    fn events_are_taken_in_order_with_and_without_waiting() {
        let context = Stub::new(false).open();
        let (file, mut far) = readable::tests::file();
        let events = AsyncEvents(Readable::new(&context, Arc::clone(&file)));
        assert_eq!(events.try_next(), Ok(None));
        assert_eq!(events.next(Duration::ZERO), Ok(None));
        for next in [AsyncEvents::try_next, |events: &AsyncEvents| {
            events.next(None)
        }] {
            far.write_all(event(Kind::PORT_ERR, 2).as_bytes()).unwrap();
            let event = next(&events).unwrap().unwrap();
            assert_eq!(event.source, AsyncEventSource::Port(2));
        }
        file.close(|_| ());
        assert_eq!(events.try_next().unwrap_err(), context.closed_error());
    }
}
