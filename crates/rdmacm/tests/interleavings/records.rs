//! A source that is drained bit by bit.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use rdmacm::core::Result;
use shuttle::thread;

use crate::event_loop::{Drained, EventSource};
use crate::schedules::check;
use crate::test_loop::TestLoop;

/// A source that reads one record when it is drained, as a device does.
#[derive(Debug)]
struct Records(EventFd);

impl EventSource for Records {
    fn readiness(&self) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.0.as_fd())
    }

    fn drain(&self) -> Result<Drained> {
        self.0.read().unwrap();
        Ok(Drained::after(1))
    }

    fn is_in_child(&self) -> bool {
        false
    }
}

/// It perhaps has a descriptor with edges, which does not tell of the other one again.
#[test]
fn a_caller_that_does_not_wait_is_notified_of_what_a_source_has_left() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        let two = EventFd::from_value_and_flags(2, flags).unwrap();
        let records = Arc::new(Records(two));
        let source: Arc<dyn EventSource> = records.clone();
        test_loop.event_loop.watch(&source).unwrap();
        let other = Arc::clone(&test_loop);
        let posts = thread::spawn(move || other.device.post(0));
        while test_loop.event_loop.run_once() {}
        posts.join().unwrap();
        assert_eq!(records.0.read(), Err(Errno::EAGAIN));
    });
}
