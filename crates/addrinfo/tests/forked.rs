//! Lookups in a forked child.
#![cfg(test)]
#![expect(unsafe_code, reason = "forks")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};
use rdmacm_addrinfo::{AddrInfoResolver, Error, Hints, Host, HostQuery, NameError, NameResolver};

const SECOND: Duration = Duration::from_secs(1);
const MAX_LOOKUPS: usize = 64;

/// Knows one host. A lookup of any other does not end.
#[derive(Debug)]
struct OneHost {
    endless: Arc<AtomicUsize>,
}

impl NameResolver for OneHost {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        if query.name != "storage-7" {
            self.endless.fetch_add(1, Ordering::Relaxed);
            loop {
                thread::park();
            }
        }
        Ok(Host::from_iter([([10, 1, 0, 7], 0).into()]))
    }
}

/// Runs `work` in a child, which must end by itself.
fn in_child(work: impl FnOnce()) {
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
    let ended = waitpid(child, None);
    assert_eq!(ended, Ok(WaitStatus::Exited(child, 0)));
}

/// Their threads are not in the child, and never end there.
#[test]
fn lookups_of_the_parent_do_not_count_in_a_child() {
    let endless = Arc::new(AtomicUsize::new(0));
    let resolver = AddrInfoResolver::new().name_resolver(OneHost {
        endless: Arc::clone(&endless),
    });
    let lookup = |name, limit| resolver.addresses(name, "7471", &Hints::rc().deadline(limit));
    for _ in 0..MAX_LOOKUPS {
        let endless = lookup("nobody", Duration::ZERO);
        assert_eq!(endless, Err(Error::LookupDeadline));
    }
    while endless.load(Ordering::Relaxed) < MAX_LOOKUPS {
        thread::yield_now();
    }
    let known = |limit| lookup("storage-7", limit).map(|found| found.len());
    assert_eq!(known(Duration::ZERO), Err(Error::TooManyLookups));
    in_child(|| {
        assert_eq!(known(10 * SECOND), Ok(1));
        in_child(|| assert_eq!(known(10 * SECOND), Ok(1)));
    });
    assert_eq!(known(Duration::ZERO), Err(Error::TooManyLookups));
}
