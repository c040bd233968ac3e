//! What is read of a status without its lock. Not beside it: the tests in `tests/interleavings`
//! compile that a second time.

use rdmacm_rsocket::{Control, How, ProtocolError};

use super::failure::StreamFailure;
use super::shared_status::SharedStatus;
use super::status::{Status, StreamInterest};
use crate::data::KeepAlive;
use crate::event_loop::{Wakers, new_waker};

fn status() -> SharedStatus {
    let now = std::time::Instant::now();
    SharedStatus::new(Status::new(KeepAlive::new(None, now)))
}

#[test]
fn what_ends_a_stream_is_seen_without_the_lock() {
    let closed = status();
    assert!(closed.is_open() && !closed.has_failed());
    closed.lock().shutdown.close(How::Read);
    assert!(!closed.is_open() && !closed.has_failed());

    let finished = status();
    finished.lock().shutdown.receive(Control::Shutdown);
    assert!(!finished.is_open());

    let failed = status();
    let failure = StreamFailure::Protocol(ProtocolError::NoCredit);
    failed.lock().fail(failure, &mut Wakers::default());
    assert!(!failed.is_open() && failed.has_failed());
}

#[test]
fn waiters_are_seen_without_the_lock() {
    let status = status();
    for interest in [StreamInterest::Readable, StreamInterest::Flushed] {
        assert!(!status.has_waiters());
        let replaced = status.lock().queue_mut(interest).add(1, &new_waker());
        assert!(replaced.is_none() && status.has_waiters());
        let waiter = status.lock().queue_mut(interest).remove(1);
        assert!(waiter.is_some());
    }
    assert!(!status.has_waiters());
}

/// Whoever is not woken must be told of what comes.
#[test]
fn others_are_those_that_are_not_woken() {
    let status = status();
    let [reader, writer] = [(); 2].map(|()| new_waker());
    let add = |interest, key, waker| drop(status.lock().queue_mut(interest).add(key, waker));
    let remove = |interest, key| drop(status.lock().queue_mut(interest).remove(key));
    assert!(!status.lock().has_others(&Wakers::default()));
    add(StreamInterest::Readable, 1, &reader);
    add(StreamInterest::Writable, 2, &writer);
    let mut wakers = Wakers::default();
    status
        .lock()
        .wake_first(StreamInterest::Writable, &mut wakers);
    assert!(status.lock().has_others(&wakers));
    // One that is woken has gone, and the other one is still there.
    remove(StreamInterest::Writable, 2);
    assert!(status.lock().has_others(&wakers));
    status
        .lock()
        .wake_first(StreamInterest::Readable, &mut wakers);
    assert!(!status.lock().has_others(&wakers));
    remove(StreamInterest::Readable, 1);
    assert!(!status.lock().has_others(&Wakers::default()));
}
