//! What is read of a status without its lock. Not beside it: the tests in `tests/interleavings`
//! compile that a second time.

use rdmacm_rsocket::{Control, How, ProtocolError};

use super::failure::StreamFailure;
use super::shared_status::SharedStatus;
use super::status::{Status, StreamInterest, Wakers};
use crate::event_loop::new_waker;
use crate::messages::KeepAlive;

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
