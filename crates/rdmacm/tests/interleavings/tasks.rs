//! Tasks that wait, which a runtime wakes: one of them reads the device.

use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread;

use crate::event_loop::{QueuedEvent, sleep_until};
use crate::schedules::check;
use crate::test_loop::{SECOND, TestLoop, join_all, poll_once};

/// A task on a thread of its own that waits for this many events of an id.
fn wait_for(test_loop: &Arc<TestLoop>, id: usize, events: usize) -> thread::JoinHandle<()> {
    let test_loop = Arc::clone(test_loop);
    thread::spawn(move || {
        block_on(async {
            for _ in 0..events {
                let event = test_loop.ids[id].next(None).await.unwrap();
                assert!(matches!(event, QueuedEvent::Cm(_)), "{event:?}");
            }
        });
    })
}

#[test]
fn each_task_receives_its_events() {
    check(|| {
        let test_loop = TestLoop::of_tasks(3);
        let tasks = [0, 1, 2].map(|id| wait_for(&test_loop, id, 2));
        for id in [0, 1, 2, 2, 1, 0] {
            test_loop.device.post(id);
        }
        join_all(tasks);
    });
}

#[test]
fn tasks_that_share_an_id_receive_each_event_once() {
    check(|| {
        let test_loop = TestLoop::of_tasks(1);
        let tasks = [(); 3].map(|()| wait_for(&test_loop, 0, 2));
        for _ in 0..6 {
            test_loop.device.post(0);
        }
        join_all(tasks);
        assert!(test_loop.ids[0].queue().pop().is_none());
    });
}

#[test]
fn a_task_that_ends_leaves_the_runtime_to_another() {
    check(|| {
        let test_loop = TestLoop::of_tasks(2);
        let late = wait_for(&test_loop, 1, 1);
        let early = wait_for(&test_loop, 0, 1);
        test_loop.device.post(0);
        early.join().unwrap();
        test_loop.device.post(1);
        late.join().unwrap();
    });
}

#[test]
fn a_task_that_is_dropped_leaves_the_runtime_to_another() {
    check(|| {
        let test_loop = TestLoop::of_tasks(2);
        let staying = wait_for(&test_loop, 1, 1);
        let leaving = {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                block_on(poll_once(test_loop.ids[0].next(None)));
            })
        };
        test_loop.device.post(0);
        test_loop.device.post(1);
        join_all([staying, leaving]);
    });
}

#[test]
fn closing_a_queue_wakes_all_its_waiters() {
    check(|| {
        let test_loop = TestLoop::of_tasks(1);
        let tasks = [(); 3].map(|()| {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let event = block_on(test_loop.ids[0].next(None)).unwrap();
                assert!(matches!(event, QueuedEvent::Closed), "{event:?}");
            })
        });
        test_loop.ids[0].queue().close();
        join_all(tasks);
    });
}

#[test]
fn each_task_wakes_at_its_time() {
    check(|| {
        let test_loop = TestLoop::of_tasks(1);
        let begun = test_loop.event_loop.now();
        let late = wait_for(&test_loop, 0, 1);
        let sleeping = [3, 1, 2].map(|seconds| {
            let test_loop = Arc::clone(&test_loop);
            thread::spawn(move || {
                let until = begun + seconds * SECOND;
                block_on(sleep_until(&test_loop.event_loop, until)).unwrap();
                assert!(test_loop.event_loop.now() >= until);
            })
        });
        join_all(sleeping);
        test_loop.device.post(0);
        late.join().unwrap();
    });
}

/// More events than a task reads before others run.
#[test]
fn what_a_task_leaves_is_read() {
    const EVENTS: usize = 40;
    check(|| {
        let test_loop = TestLoop::of_tasks(2);
        for _ in 0..EVENTS {
            test_loop.device.post(0);
        }
        test_loop.device.post(1);
        join_all([wait_for(&test_loop, 1, 1), wait_for(&test_loop, 0, EVENTS)]);
    });
}

/// The event may come before, while or after the task reads, and another one may read.
#[test]
fn a_task_reads_what_has_come_meanwhile_and_waits_for_the_rest() {
    check(|| {
        let test_loop = TestLoop::of_tasks(2);
        let waits = wait_for(&test_loop, 1, 1);
        let other = Arc::clone(&test_loop);
        let posts = thread::spawn(move || [0, 1].map(|id| other.device.post(id)));
        test_loop
            .event_loop
            .read_events_for(test_loop.ids[0].queue());
        block_on(test_loop.ids[0].next(None)).unwrap();
        posts.join().unwrap();
        waits.join().unwrap();
    });
}
