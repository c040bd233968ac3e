//! Those who wait for a stream, and those who change it, who ask without the status's lock
//! whether anybody waits.

use std::sync::Arc;
use std::task::Waker;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::failure::StreamFailure;
use super::shared_status::SharedStatus;
use super::status::{Status, StreamInterest};
use crate::data::KeepAlive;
use crate::event_loop::{WaitSource, Wakers, block_on, wait_for};
use crate::schedules::check;
use crate::test_loop::{TestLoop, join_all};

const READABLE: StreamInterest = StreamInterest::Readable;

/// A stream that receives. It locks and asks in the order of a queue pair.
struct Stream {
    test_loop: Arc<TestLoop>,
    arrived: Mutex<usize>,
    status: SharedStatus,
}

/// Whether something was read, rather than the stream's failure.
type Read = bool;

impl Stream {
    fn open() -> Arc<Self> {
        Arc::new(Self {
            test_loop: TestLoop::of_threads(0),
            arrived: Mutex::new(0),
            status: SharedStatus::new(Status::new(KeepAlive)),
        })
    }

    fn try_read(&self) -> Option<Read> {
        let mut arrived = self.arrived.lock().unwrap();
        if *arrived > 0 {
            *arrived -= 1;
            return Some(true);
        }
        (!self.status.is_open()).then_some(false)
    }

    /// Something arrives.
    fn receive(&self) {
        let mut wakers = Wakers::default();
        let mut arrived = self.arrived.lock().unwrap();
        *arrived += 1;
        if self.status.has_waiters() {
            self.status.lock().wake_first(READABLE, &mut wakers);
        }
        drop(arrived);
        wakers.wake();
    }

    fn fail(&self) {
        let mut wakers = Wakers::default();
        let failure = StreamFailure { is_reason: true };
        self.status.lock().fail(failure, &mut wakers);
        wakers.wake();
    }

    fn register(&self, key: u64, waker: &Waker) {
        let replaced = self.status.lock().queue_mut(READABLE).add(key, waker);
        drop(replaced);
    }

    fn withdraw(&self, key: u64) {
        let waiter = self.status.lock().queue_mut(READABLE).remove(key);
        drop(waiter);
    }

    fn deregister(&self, key: u64) {
        self.withdraw(key);
        self.wake_next();
    }

    /// A waiter that leaves may have been woken for what another one can read.
    fn wake_next(&self) {
        if *self.arrived.lock().unwrap() > 0 {
            let mut wakers = Wakers::default();
            self.status.lock().wake_first(READABLE, &mut wakers);
            wakers.wake();
        }
    }

    /// As tasks and threads with a deadline do.
    fn read(&self) -> Read {
        let event_loop = &self.test_loop.event_loop;
        block_on(event_loop, wait_for(event_loop, self, None)).unwrap()
    }

    /// As a thread does that waits for nothing else.
    fn read_on_thread(&self) -> Read {
        let event_loop = &self.test_loop.event_loop;
        let (key, failures) = (event_loop.new_key(), event_loop.failures());
        loop {
            let thread = event_loop.waiting_thread();
            self.register(key, thread.waker());
            if let Some(read) = self.try_read() {
                self.deregister(key);
                event_loop.keep_thread(thread);
                return read;
            }
            event_loop.park(&thread, failures);
            event_loop.keep_thread(thread);
            self.withdraw(key);
            if let Some(read) = self.try_read() {
                self.wake_next();
                return read;
            }
        }
    }
}

impl WaitSource for &Stream {
    type Item = Read;

    fn take(&mut self) -> Option<Read> {
        self.try_read()
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        Stream::register(self, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        Stream::withdraw(self, key);
    }

    fn deregister(&mut self, key: u64) {
        Stream::deregister(self, key);
    }
}

/// Two threads, each of which reads twice in one of the ways.
fn readers(stream: &Arc<Stream>) -> [thread::JoinHandle<()>; 2] {
    [Stream::read, Stream::read_on_thread].map(|read| {
        let stream = Arc::clone(stream);
        thread::spawn(move || {
            for _ in 0..2 {
                assert!(read(&stream));
            }
        })
    })
}

#[test]
fn what_arrives_wakes_a_reader() {
    check(|| {
        let stream = Stream::open();
        let readers = readers(&stream);
        for _ in 0..4 {
            stream.receive();
        }
        join_all(readers);
        assert!(!stream.status.has_waiters());
    });
}

#[test]
fn what_arrives_in_two_threads_wakes_each_reader() {
    check(|| {
        let stream = Stream::open();
        let readers = readers(&stream);
        let receivers = [(); 2].map(|()| {
            let stream = Arc::clone(&stream);
            thread::spawn(move || (0..2).for_each(|_| stream.receive()))
        });
        join_all(readers.into_iter().chain(receivers));
    });
}

#[test]
fn a_failure_wakes_all_readers() {
    check(|| {
        let stream = Stream::open();
        let readers = [Stream::read, Stream::read_on_thread].map(|read| {
            let stream = Arc::clone(&stream);
            thread::spawn(move || assert!(!read(&stream)))
        });
        stream.fail();
        join_all(readers);
    });
}
