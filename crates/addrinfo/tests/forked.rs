//! Lookups in a forked child.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rdmacm_addrinfo::{AddrInfoResolver, Error, Hints, Host, HostQuery, NameError, NameResolver};
use rdmacm_test_helpers::child_ends;

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
    assert!(child_ends(|| {
        assert_eq!(known(10 * SECOND), Ok(1));
        assert!(child_ends(|| assert_eq!(known(10 * SECOND), Ok(1))));
    }));
    assert_eq!(known(Duration::ZERO), Err(Error::TooManyLookups));
}
