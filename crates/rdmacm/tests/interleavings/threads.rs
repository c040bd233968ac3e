//! Threads that wait: one of them leads.

use std::pin::pin;
use std::sync::Arc;

use rdmacm::core::Error;
use shuttle::sync::mpsc;
use shuttle::thread;

use crate::event_loop::{MAX_EVENTS, QueuedEvent, block_on, sleep_until};
use crate::schedules::check;
use crate::test_loop::{SECOND, TestLoop, join_all, poll_once};

/// A thread that waits for this many events of an id.
fn wait_for(test_loop: &Arc<TestLoop>, id: usize, events: usize) -> thread::JoinHandle<()> {
    let test_loop = Arc::clone(test_loop);
    thread::spawn(move || {
        for _ in 0..events {
            let event = test_loop.wait(id).unwrap();
            assert!(matches!(event, QueuedEvent::Cm(_)), "{event:?}");
        }
    })
}

#[test]
fn each_thread_receives_its_events() {
    check(|| {
        let test_loop = TestLoop::of_threads(3);
        let threads = [0, 1, 2].map(|id| wait_for(&test_loop, id, 2));
        for id in [0, 1, 2, 2, 1, 0] {
            test_loop.device.post(id);
        }
        join_all(threads);
    });
}

#[test]
fn threads_that_share_an_id_receive_each_event_once() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let threads = [(); 3].map(|()| wait_for(&test_loop, 0, 2));
        for _ in 0..6 {
            test_loop.device.post(0);
        }
        join_all(threads);
        assert!(test_loop.ids[0].queue().pop().is_none());
    });
}

/// The second event comes only when the first was received: its receiver has led until
/// then, or another thread has.
#[test]
fn a_leader_hands_over() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let late = wait_for(&test_loop, 1, 1);
        let early = wait_for(&test_loop, 0, 1);
        test_loop.device.post(0);
        early.join().unwrap();
        test_loop.device.post(1);
        late.join().unwrap();
    });
}

/// The thread that is chosen to lead next may be woken at the same time, and leave.
#[test]
fn a_thread_that_need_not_lead_hands_over() {
    check(|| {
        let test_loop = TestLoop::of_threads(3);
        let late = wait_for(&test_loop, 2, 1);
        let early = [0, 1].map(|id| wait_for(&test_loop, id, 1));
        test_loop.device.post(0);
        test_loop.device.post(1);
        join_all(early);
        test_loop.device.post(2);
        late.join().unwrap();
    });
}

#[test]
fn closing_a_queue_wakes_all_its_waiters() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let other = wait_for(&test_loop, 1, 1);
        let threads = [(); 2].map(|()| {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let event = test_loop.wait(0).unwrap();
                assert!(matches!(event, QueuedEvent::Closed), "{event:?}");
            })
        });
        test_loop.ids[0].queue().close();
        join_all(threads);
        test_loop.device.post(1);
        other.join().unwrap();
    });
}

#[test]
fn a_result_of_another_thread_wakes_the_waiter() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let other = wait_for(&test_loop, 1, 1);
        let failed = QueuedEvent::CommandFailed(Some(Error::IdDestroyed));
        let waiting = {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let event = test_loop.wait(0).unwrap();
                assert!(matches!(event, QueuedEvent::CommandFailed(_)));
            })
        };
        let queue = Arc::clone(test_loop.ids[0].queue());
        let pushing = thread::spawn(move || queue.push(failed));
        join_all([waiting, pushing]);
        test_loop.device.post(1);
        other.join().unwrap();
    });
}

#[test]
fn each_thread_wakes_at_its_time() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let late = wait_for(&test_loop, 0, 1);
        let begun = test_loop.event_loop.now();
        let sleeping = [3, 1, 2].map(|seconds| {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let until = begun + seconds * SECOND;
                block_on(
                    &test_loop.event_loop,
                    sleep_until(&test_loop.event_loop, until),
                )
                .unwrap();
                assert!(test_loop.event_loop.now() >= until);
            })
        });
        join_all(sleeping);
        test_loop.device.post(0);
        late.join().unwrap();
    });
}

/// A thread whose deadline is earlier than that of the sleeping leader.
#[test]
fn an_event_or_the_deadline_ends_a_wait() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let leader = wait_for(&test_loop, 1, 1);
        let short = {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let until = test_loop.after(SECOND);
                match block_on(&test_loop.event_loop, test_loop.ids[0].next(Some(until))) {
                    Ok(event) => assert!(matches!(event, QueuedEvent::Cm(_))),
                    Err(error) => assert_eq!(error, Error::DeadlinePassed),
                }
            })
        };
        test_loop.device.post(0);
        short.join().unwrap();
        test_loop.device.post(1);
        leader.join().unwrap();
    });
}

/// More events than a leader reads before it steps down.
#[test]
fn what_a_leader_leaves_is_read() {
    const EVENTS: usize = 40;
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        for _ in 0..EVENTS {
            test_loop.device.post(0);
        }
        test_loop.device.post(1);
        join_all([wait_for(&test_loop, 1, 1), wait_for(&test_loop, 0, EVENTS)]);
    });
}

#[test]
fn a_wait_that_is_dropped_leaves_its_event_to_another() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let staying = wait_for(&test_loop, 0, 1);
        let leaving = {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let next = poll_once(test_loop.ids[0].next(None));
                if block_on(&test_loop.event_loop, next).is_some() {
                    test_loop.device.post(0);
                }
            })
        };
        test_loop.device.post(0);
        join_all([staying, leaving]);
    });
}

/// Also those that are parked while one that has received it waits again.
#[test]
fn all_waiters_receive_a_failure() {
    check(|| {
        let test_loop = TestLoop::of_threads(3);
        let (sender, progress) = mpsc::channel();
        let failing = [0, 1, 2].map(|id| {
            let (test_loop, sender) = (Arc::clone(&test_loop), sender.clone());
            thread::spawn(move || {
                let error = block_on(&test_loop.event_loop, async {
                    let mut next = pin!(test_loop.ids[id].next(None));
                    assert!(poll_once(next.as_mut()).await.is_none());
                    sender.send(()).unwrap();
                    next.await.unwrap_err()
                });
                assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
                sender.send(()).unwrap();
                test_loop.wait(id).unwrap();
            })
        });
        let each = || (0..3).for_each(|_| progress.recv().unwrap());
        each();
        test_loop.device.fail(libc::ENOMEM);
        each();
        (0..3).for_each(|id| test_loop.device.post(id));
        join_all(failing);
    });
}

/// A thread that leads reads what it has come for, and leaves. Another caller does not wait, and
/// perhaps hears no more of what is there.
#[test]
fn a_leader_that_leaves_has_read_for_callers_that_do_not_wait() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let waits = wait_for(&test_loop, 0, 1);
        test_loop.device.post(0);
        test_loop.device.post(1);
        assert!(!test_loop.event_loop.run_once());
        waits.join().unwrap();
        assert!(test_loop.ids[1].queue().pop().is_some());
    });
}

#[test]
fn a_caller_that_does_not_wait_is_notified_of_more_than_it_has_read() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        (0..MAX_EVENTS).for_each(|_| test_loop.device.post(0));
        let other = Arc::clone(&test_loop);
        let posts = thread::spawn(move || other.device.post(0));
        assert!(test_loop.event_loop.run_once());
        posts.join().unwrap();
        assert!(!test_loop.event_loop.run_once());
        let events = std::iter::from_fn(|| test_loop.ids[0].queue().pop());
        assert_eq!(events.count(), MAX_EVENTS + 1);
    });
}

/// The other one leads, and may have read before the event came.
#[test]
fn callers_that_do_not_wait_read_for_each_other() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let other = Arc::clone(&test_loop);
        let reads = thread::spawn(move || assert!(!other.event_loop.run_once()));
        test_loop.device.post(0);
        assert!(!test_loop.event_loop.run_once());
        reads.join().unwrap();
        assert!(test_loop.ids[0].queue().pop().is_some());
    });
}

/// Neither the one that waits nor a caller that finds it leading.
#[test]
fn a_channel_that_cannot_be_read_keeps_no_thread() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let other = Arc::clone(&test_loop);
        let waits = thread::spawn(move || {
            other.wait(0).unwrap_err();
        });
        test_loop.device.fail_for_ever(libc::EACCES);
        let reads_itself = test_loop.event_loop.run_once();
        waits.join().unwrap();
        assert!(reads_itself || test_loop.device.is_woken());
        assert!(test_loop.event_loop.run_once());
    });
}

/// A wake-up comes before the events that are there.
#[test]
fn a_wake_up_hides_no_event() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let other = Arc::clone(&test_loop);
        let wakes = thread::spawn(move || other.event_loop.channel().waker().wake());
        test_loop.device.post(0);
        while test_loop.event_loop.run_once() {}
        wakes.join().unwrap();
        assert!(test_loop.ids[0].queue().pop().is_some());
    });
}

/// A reading error may leave what is there.
#[test]
fn a_caller_that_does_not_wait_is_notified_of_more_after_an_error() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let other = Arc::clone(&test_loop);
        let posts = thread::spawn(move || other.device.post(0));
        test_loop.device.fail(libc::EIO);
        assert!(test_loop.event_loop.run_once());
        posts.join().unwrap();
        assert!(!test_loop.event_loop.run_once());
        assert!(test_loop.ids[0].queue().pop().is_some());
    });
}

/// The event may come before, while or after the caller reads, and another thread may lead.
#[test]
fn a_caller_reads_what_has_come_meanwhile_and_waits_for_the_rest() {
    check(|| {
        let test_loop = TestLoop::of_threads(2);
        let waits = wait_for(&test_loop, 1, 1);
        let other = Arc::clone(&test_loop);
        let posts = thread::spawn(move || [0, 1].map(|id| other.device.post(id)));
        test_loop
            .event_loop
            .read_events_for(test_loop.ids[0].queue());
        test_loop.wait(0).unwrap();
        posts.join().unwrap();
        waits.join().unwrap();
    });
}

/// Who takes the wake-up of callers that do not wait reads for them.
#[test]
fn a_wake_up_that_was_read_with_events_hides_none() {
    check(|| {
        let test_loop = TestLoop::of_threads(1);
        let other = Arc::clone(&test_loop);
        test_loop.device.post(0);
        let wakes = thread::spawn(move || other.event_loop.channel().waker().wake());
        test_loop
            .event_loop
            .read_events_for(test_loop.ids[0].queue());
        wakes.join().unwrap();
        assert!(test_loop.device.is_woken() || test_loop.ids[0].queue().pop().is_some());
    });
}
