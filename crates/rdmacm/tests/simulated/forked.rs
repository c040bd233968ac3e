//! Forked children.

use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rdmacm::{BlockingExecutor as _, ThreadExecutor};
use rdmacm_test_helpers::child_ends;

fn run_on(executor: &ThreadExecutor) {
    let (done, is_done) = channel();
    executor.spawn(Box::new(move || done.send(()).unwrap()));
    is_done.recv().unwrap();
}

/// The parent's thread is not in the child.
#[test]
fn tasks_of_a_child_run_though_a_thread_of_its_parent_is_idle() {
    let executor = ThreadExecutor::default();
    run_on(&executor);
    assert!(child_ends(|| {
        for _ in 0..2 {
            run_on(&executor);
            // Until the thread has waited for another task in vain.
            while fs::read_dir("/proc/self/task").unwrap().count() > 1 {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }));
}
