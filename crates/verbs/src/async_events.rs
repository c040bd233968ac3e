//! What happens to objects unasked.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rdmacm_abi::uverbs::{self, AsyncEventKind};
use rdmacm_core::Deadline;

use crate::context::Context;
use crate::error::Result;
use crate::readable::Readable;
use crate::token::Token;

/// What happens unasked to the objects of a context: a queue pair breaks, a port
/// goes down, a shared queue runs low. Each event is read once, by whoever reads.
///
/// Its descriptor, for event loops, is readable while there is something to
/// [`take`](Self::take), and when the device has gone.
#[derive(Debug)]
#[doc(alias = "ibv_async_event")]
pub struct AsyncEvents(Readable);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What.
    #[doc(alias = "event_type")]
    pub kind: AsyncEventKind,
    /// To whom.
    pub subject: AsyncEventSource,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsyncEventSource {
    /// The queue pair of this token.
    QueuePair(Token),
    /// The completion queue of this token.
    CompletionQueue(Token),
    /// The shared receive queue of this token.
    SharedReceiveQueue(Token),
    /// The port of this number, from 1.
    Port(u64),
    /// The device.
    Device,
    /// An event that is not known here, and the number that came with it.
    Unknown(u64),
}

impl AsyncEvents {
    pub(crate) fn of(context: &Context) -> Result<Self> {
        let file = context.uverbs().async_events();
        Readable::new(context, file.ok_or_else(|| context.gone())?).map(Self)
    }

    /// Takes one event, if there is one.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) when the device has.
    #[doc(alias = "ibv_get_async_event")]
    pub fn take(&self) -> Result<Option<AsyncEvent>> {
        let event: Option<uverbs::AsyncEvent> = self.0.read()?;
        Ok(event.map(AsyncEvent::from))
    }

    /// Takes the next event, waited for until the deadline; `None` when it has
    /// come.
    ///
    /// # Errors
    /// [`Error::Gone`](crate::Error::Gone) when the device has.
    #[doc(alias = "ibv_get_async_event")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<AsyncEvent>> {
        let until = deadline.into().until(Instant::now());
        loop {
            if let Some(event) = self.take()? {
                return Ok(Some(event));
            }
            if !self.0.wait(until)? {
                return Ok(None);
            }
        }
    }
}

impl AsFd for AsyncEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<uverbs::AsyncEvent> for AsyncEvent {
    fn from(event: uverbs::AsyncEvent) -> Self {
        let unknown = AsyncEventSource::Unknown(event.element);
        let object = |subject: fn(Token) -> AsyncEventSource| {
            Token::told(event.element).map_or(unknown, subject)
        };
        let subject = match event.kind {
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
            subject,
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

    fn told(kind: Kind, element: u64) -> uverbs::AsyncEvent {
        uverbs::AsyncEvent {
            element,
            kind,
            ..uverbs::AsyncEvent::new_zeroed()
        }
    }

    #[test]
    fn each_kind_has_its_subject() {
        let token = Token::told(7).unwrap();
        for (kinds, subject) in [
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
                let event = AsyncEvent::from(told(*kind, 7));
                assert_eq!((event.kind, event.subject), (*kind, subject));
            }
        }
        // No object has such a name.
        let strange = AsyncEvent::from(told(Kind::CQ_ERR, u64::MAX));
        assert_eq!(strange.subject, AsyncEventSource::Unknown(u64::MAX));
    }

    #[test]
    fn events_are_taken_as_they_come_and_waited_for() {
        let context = Stub::new(false).open();
        let (file, mut far) = readable::tests::file();
        let events = AsyncEvents(Readable::new(&context, Arc::clone(&file)).unwrap());
        assert_eq!(events.take(), Ok(None));
        assert_eq!(events.next(Duration::ZERO), Ok(None));
        for next in [AsyncEvents::take, |events: &AsyncEvents| events.next(None)] {
            far.write_all(told(Kind::PORT_ERR, 2).as_bytes()).unwrap();
            let event = next(&events).unwrap().unwrap();
            assert_eq!(event.subject, AsyncEventSource::Port(2));
        }
        file.close(|_| ());
        assert_eq!(events.take().unwrap_err(), context.gone());
    }
}
