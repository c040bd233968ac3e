//! The event loop with primitives of shuttle, a scheduler that runs one thread at a time and
//! chooses the next at every lock, atomic and condition variable. Thousands of schedules
//! take seconds. A wake-up that is lost is a deadlock, which shuttle reports with the
//! schedule; `shuttle::replay` repeats it.
#![cfg(test)]

/// The event loop, and what it refers to.
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
    #[path = "no_trace.rs"]
    pub(crate) mod trace;
}

use library::{close_reason, event_loop, failed_request, trace};

mod blocking_executor {
    pub(crate) use rdmacm::BlockingExecutor;
}

mod runtime {
    pub(crate) use rdmacm::asynchronous::Reactor;
}

mod stage {
    pub(crate) use rdmacm::Stage;
}

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
}

mod device;
mod node;
mod reactor;
mod schedules;
mod tasks;
mod threads;
