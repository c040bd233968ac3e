//! Streams that were dropped before all that was written has arrived.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rdmacm_core::Deadline;

use super::connection::{LAST_ACKNOWLEDGEMENT, StreamConnection};
use crate::error::Cause;
use crate::event_loop::{EventLoop, block_on};

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
    /// Whether the task runs.
    is_kept: bool,
}

/// A stream that is kept until its peer's device has acknowledged what was written, and this one
/// the peer's last message, or until a deadline.
#[derive(Debug)]
struct LingeringStream {
    connection: Arc<StreamConnection>,
    until: Option<Instant>,
    /// Whether nothing that was written is under way any more, or too late.
    is_ended: bool,
}

impl LingeringStreams {
    /// Keeps a stream until it is over.
    pub(super) fn add(connection: &Arc<StreamConnection>) {
        let event_loop = connection.event_loop();
        let all = event_loop.extensions().get_or_default::<Self>();
        let mut state = all.state();
        state.streams.push(LingeringStream::new(connection));
        if std::mem::replace(&mut state.is_kept, true) {
            return;
        }
        drop(state);
        let (kept, dropping) = (Arc::clone(event_loop), thread::current().id());
        event_loop.executor().spawn(Box::new(move || {
            if thread::current().id() == dropping {
                // The executor has no thread left, and dropping a stream must not wait.
                all.give_up();
            } else {
                all.keep(&kept);
            }
        }));
    }

    /// Keeps the streams until all of them are over.
    fn keep(&self, event_loop: &Arc<EventLoop>) {
        let mut pause = FIRST_PAUSE;
        while let Some(first) = self.sweep() {
            if event_loop.is_blocking() && lingers(&first, event_loop) {
                continue;
            }
            // This thread is none of the runtime's, and the runtime may have no task to wake.
            thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Drops the streams that are over, and returns the first of those that are left. If there is
    /// none, the task ends.
    fn sweep(&self) -> Option<Arc<StreamConnection>> {
        // Without the lock: looking at a stream may wake somebody, and dropping one block.
        let mut streams = std::mem::take(&mut self.state().streams);
        streams.retain_mut(|one| !one.is_over());
        let mut state = self.state();
        state.streams.append(&mut streams);
        let first = state.streams.first().map(|one| Arc::clone(&one.connection));
        state.is_kept = first.is_some();
        first
    }

    fn give_up(&self) {
        let mut state = self.state();
        state.is_kept = false;
        let streams = std::mem::take(&mut state.streams);
        drop(state);
        drop(streams);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LingeringStream {
    fn new(connection: &Arc<StreamConnection>) -> Self {
        let deadline = connection.options().close_deadline;
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
