//! Waking several waiters, whose wakers may be of different runtimes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

/// Wakes each of them, also if the waker of one panics.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    let mut rest = Rest(wakers.into_iter());
    rest.0.by_ref().for_each(Waker::wake);
}

/// Those that were not woken yet.
struct Rest<I: Iterator<Item = Waker>>(I);

impl<I: Iterator<Item = Waker>> Drop for Rest<I> {
    fn drop(&mut self) {
        for waker in self.0.by_ref() {
            // Whoever panics first is reported.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

/// Wakes waiters and does what remains then, also if one of their wakers panics.
pub(crate) fn wake_and_then(wake: impl FnOnce(), then: impl FnOnce()) {
    // Not by a destructor, in which a second panic would abort the process.
    let woken = catch_unwind(AssertUnwindSafe(wake));
    then();
    if let Err(panic) = woken {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("its executor has ended");
        }
    }

    #[test]
    fn a_waker_that_panics_leaves_nobody_asleep() {
        let counted = Arc::new(Counted::default());
        let good = || Waker::from(Arc::clone(&counted));
        let bad = || Waker::from(Arc::new(Panicking));
        let wakers = [good(), bad(), good(), bad(), good()];
        assert!(catch_unwind(AssertUnwindSafe(|| wake_all(wakers))).is_err());
        assert_eq!(counted.0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_remains_is_done_though_wakers_panic_before_and_then() {
        let bad = || Waker::from(Arc::new(Panicking)).wake();
        let mut is_done = false;
        let both = || {
            wake_and_then(bad, || {
                is_done = true;
                bad();
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(both)).is_err());
        assert!(is_done);
    }
}
