//! Streams that were dropped before all that was written has arrived.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::Deadline;

use super::connection::{LAST_ACKNOWLEDGEMENT, StreamConnection};
use crate::attempt::Attempt;
use crate::error::{Cause, Result, Target};
use crate::event_loop::{EventLoop, WaitSource, WaiterQueue, block_on, wait_for, wake_all};
use crate::stage::Stage;

/// The pauses between two looks at all of them.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LAST_PAUSE: Duration = Duration::from_millis(20);

/// Those of an event loop. One task of its executor keeps all of them: a peer that acknowledges
/// nothing takes memory, but no thread.
#[derive(Debug, Default)]
pub(super) struct LingeringStreams(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    streams: Vec<LingeringStream>,
    /// Whether a task keeps them.
    has_task: bool,
    /// Whether one was added since the last sweep.
    has_new: bool,
    /// Who waits until there are none.
    waiters: WaiterQueue,
}

/// A stream that is kept until its peer's device has acknowledged what was written, and this one
/// the peer's last message, or until a deadline.
#[derive(Debug)]
struct LingeringStream {
    connection: Arc<StreamConnection>,
    until: Option<Instant>,
    /// Nothing that was written is in flight any more, or it is too late for that.
    is_ended: bool,
}

impl LingeringStreams {
    /// Keeps a stream until it is over.
    pub(super) fn add(connection: &Arc<StreamConnection>) {
        let event_loop = connection.event_loop();
        let all = event_loop.extensions().get_or_default::<Self>();
        let mut state = all.state();
        state.streams.push(LingeringStream::new(connection));
        state.has_new = true;
        if std::mem::replace(&mut state.has_task, true) {
            return;
        }
        drop(state);
        let has_spawned = Arc::new(AtomicBool::new(false));
        let task = Task {
            all,
            event_loop: Arc::clone(event_loop),
            dropping: thread::current().id(),
            has_spawned: Arc::clone(&has_spawned),
            is_done: false,
        };
        event_loop.executor().spawn(Box::new(|| task.run()));
        has_spawned.store(true, Ordering::Relaxed);
    }

    /// Drops the streams that are over, and returns the first of those that are left, and whether
    /// they are others than before. If there is none, nobody keeps them any more.
    fn sweep(&self) -> Option<(Arc<StreamConnection>, bool)> {
        let mut state = self.state();
        let mut streams = std::mem::take(&mut state.streams);
        let has_new = std::mem::take(&mut state.has_new);
        // Without the lock: looking at a stream may wake somebody, and dropping one block.
        drop(state);
        let before = streams.len();
        streams.retain_mut(|one| !one.is_over());
        let is_changed = has_new || streams.len() < before;
        let mut state = self.state();
        state.streams.append(&mut streams);
        let first = state.streams.first().map(|one| Arc::clone(&one.connection));
        if first.is_none() {
            state.has_task = false;
            let waiters = state.all_waiters();
            drop(state);
            // A panic would end this task as if its executor dropped it, and give up what was added
            // meanwhile.
            let _ = catch_unwind(AssertUnwindSafe(|| wake_all(waiters)));
        }
        Some((first?, is_changed))
    }

    fn give_up(&self) {
        let mut state = self.state();
        state.has_task = false;
        let streams = std::mem::take(&mut state.streams);
        let waiters = state.all_waiters();
        drop(state);
        drop(streams);
        wake_all(waiters);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn all_waiters(&self) -> Vec<Waker> {
        self.waiters.iter().cloned().collect()
    }
}

/// Waits until no stream lingers.
pub(crate) async fn wait_for_dropped_streams(
    event_loop: &Arc<EventLoop>,
    deadline: Deadline,
) -> Result<()> {
    let all = event_loop.extensions().get_or_default::<LingeringStreams>();
    let target = Target::name("the peers of dropped streams");
    let attempt = Attempt::until(event_loop, deadline, target);
    let ended = wait_for(event_loop, NoneLeft(&all), attempt.until).await;
    ended.map_err(|error| attempt.fail(Stage::Close, error))
}

/// That no stream lingers any more.
struct NoneLeft<'a>(&'a LingeringStreams);

impl WaitSource for NoneLeft<'_> {
    type Item = ();

    fn take(&mut self) -> Option<()> {
        (!self.0.state().has_task).then_some(())
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let replaced = self.0.state().waiters.add(key, waker);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(replaced);
    }

    fn deregister(&mut self, key: u64) {
        let removed = self.0.state().waiters.remove(key);
        drop(removed);
    }
}

/// Keeps all streams.
struct Task {
    all: Arc<LingeringStreams>,
    event_loop: Arc<EventLoop>,
    /// The thread that has dropped the first of them.
    dropping: ThreadId,
    /// Whether the executor has taken the task: it may run it on that thread later.
    has_spawned: Arc<AtomicBool>,
    is_done: bool,
}

impl Task {
    fn run(mut self) {
        let has_spawned = self.has_spawned.load(Ordering::Relaxed);
        if !has_spawned && thread::current().id() == self.dropping {
            // The executor has no thread for it, and dropping a stream must not wait.
            return;
        }
        self.keep();
        self.is_done = true;
    }

    /// Returns once all of them are over.
    fn keep(&self) {
        let mut pause = FIRST_PAUSE;
        while let Some((first, is_changed)) = self.all.sweep() {
            if self.event_loop.is_blocking() && lingers(&first, &self.event_loop) {
                continue;
            }
            if is_changed {
                pause = FIRST_PAUSE;
            }
            // This thread is none of the runtime's, and the runtime may have no task to wake.
            thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

impl Drop for Task {
    /// The executor may drop the task, as one does that shuts down.
    fn drop(&mut self) {
        if !self.is_done {
            // A waker may have panicked before.
            let _ = catch_unwind(AssertUnwindSafe(|| self.all.give_up()));
        }
    }
}

impl LingeringStream {
    fn new(connection: &Arc<StreamConnection>) -> Self {
        let deadline = connection.options().linger;
        Self {
            until: deadline.until(now(connection.event_loop())),
            connection: Arc::clone(connection),
            is_ended: false,
        }
    }

    fn is_over(&mut self) -> bool {
        let now = now(self.connection.event_loop());
        if !self.is_ended {
            if !self.connection.is_ended() && !self.is_late(now) {
                return false;
            }
            self.is_ended = true;
            self.until = now.checked_add(LAST_ACKNOWLEDGEMENT);
        }
        !self.connection.is_awaited() || self.is_late(now)
    }

    fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// Waits for a stream, but not for long: another one may be over. `false` if the event loop fails.
fn lingers(connection: &StreamConnection, event_loop: &Arc<EventLoop>) -> bool {
    let deadline = Deadline::At(event_loop.now() + LAST_PAUSE);
    let lingered = block_on(event_loop, connection.lingered(deadline));
    matches!(lingered, Ok(()) | Err(Cause::Deadline))
}

/// A runtime may stop its clock.
fn now(event_loop: &EventLoop) -> Instant {
    if event_loop.is_blocking() {
        event_loop.now()
    } else {
        Instant::now()
    }
}
