//! Forked children.
#![expect(unsafe_code, reason = "forks")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};

/// Forks. The child does `work` and exits. Returns whether it has done so without a panic, within
/// 30 seconds. `work` must need nothing of other threads, such as a lock that one may hold: they are
/// not in the child.
#[must_use]
pub fn child_ends(work: impl FnOnce()) -> bool {
    // SAFETY: the child waits for no thread of this process, and is killed otherwise.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            alarm::set(30);
            // The test's thread is the only one: what a panic says ends there.
            let done = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: the child ends at once.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        ForkResult::Parent { child } => child,
    };
    waitpid(child, None) == Ok(WaitStatus::Exited(child, 0))
}
