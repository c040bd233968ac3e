//! The event loop, and a stream's status, with primitives of shuttle, a scheduler that runs one thread at a time and
//! chooses the next at every lock, atomic and condition variable. Thousands of schedules
//! take seconds. A wake-up that is lost is a deadlock, which shuttle reports with the
//! schedule; `shuttle::replay` repeats it.
#![cfg(test)]

/// The event loop and the status, and what they refer to.
#[path = "../../src"]
#[expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "for other modules, and users, of the crate"
)]
mod library {
    pub(crate) mod close_reason;
    pub(crate) mod event_loop;
    pub(crate) mod failed_request;
    pub(crate) mod stream {
        mod shared_status;
        mod status;
        #[path = "../../tests/interleavings/streams.rs"]
        mod streams;

        mod failure {
            /// What is known of it.
            #[derive(Clone, Debug)]
            pub(super) struct StreamFailure {
                pub(super) is_reason: bool,
            }

            impl StreamFailure {
                pub(super) fn is_reason(&self) -> bool {
                    self.is_reason
                }
            }
        }
    }
    #[path = "no_trace.rs"]
    pub(crate) mod trace;
}

use library::{close_reason, event_loop, failed_request, trace};

mod blocking_executor {
    pub(crate) use rdmacm::BlockingExecutor;
}

mod data {
    /// Of streams without one.
    #[derive(Debug)]
    pub(crate) struct KeepAlive;
}

mod runtime {
    pub(crate) use rdmacm::asynchronous::Reactor;
}

mod stage {
    pub(crate) use rdmacm::Stage;
}

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Condvar, Mutex as CondvarMutex, MutexGuard};

    /// Without poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

mod device;
mod reactor;
mod records;
mod schedules;
mod tasks;
mod test_loop;
mod threads;
