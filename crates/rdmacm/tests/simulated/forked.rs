//! Forked children.
#![expect(unsafe_code, reason = "forks")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};
use rdmacm::{BlockingExecutor as _, ThreadExecutor};

/// Runs `work` in a child, which must end by itself.
pub(crate) fn in_child(work: impl FnOnce()) {
    // SAFETY: what the child uses, no other thread of this process does.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // Ends a child that hangs.
            alarm::set(30);
            // The test's thread is the only one: what a panic says ends there.
            let done = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: the child ends at once.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        ForkResult::Parent { child } => child,
    };
    let ended = waitpid(child, None);
    assert_eq!(ended, Ok(WaitStatus::Exited(child, 0)));
}

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
    in_child(|| {
        for _ in 0..2 {
            run_on(&executor);
            // Until the thread has waited for another task in vain.
            while fs::read_dir("/proc/self/task").unwrap().count() > 1 {
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
}
