//! Waiting for a stream with `poll(2)`.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::task::{Wake, Waker};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_verbs::Context;

use super::connection::StreamConnection;
use super::descriptor::Descriptor;
use super::status::StreamInterest;
use crate::error::Result;
use crate::event_loop::EventSource as _;
use crate::stage::Stage;

/// A descriptor that is readable while a call may be worth repeating: there is something to read
/// for the event loop, or the stream was woken after a call that would have waited.
#[derive(Debug)]
pub(super) struct Readiness {
    descriptor: Descriptor,
    directions: Mutex<Directions>,
    /// Knows whether this is a forked child, which shares the descriptor with its parent.
    context: Context,
}

#[derive(Debug)]
struct Directions {
    reading: CallState,
    writing: CallState,
    /// Of calls that map memory or write at an offset: they wait for other things than a write
    /// does, so one that succeeds says nothing about them.
    progress: CallState,
    /// How many rechecks there were.
    rechecks: u32,
    /// Whether nobody can read any more.
    is_reader_gone: bool,
}

/// What a direction's calls have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// There is nothing to wait for.
    None,
    /// The last one would have waited.
    Waiting,
    /// The next one may return something.
    Due,
    /// As `Due`, until the call in another direction that has begun this recheck has looked.
    Rechecked(u32),
}

impl CallState {
    fn is_due(self) -> bool {
        matches!(self, Self::Due | Self::Rechecked(_))
    }
}

impl Directions {
    fn of(&mut self, interest: StreamInterest) -> &mut CallState {
        match interest {
            StreamInterest::Readable => &mut self.reading,
            StreamInterest::Progress => &mut self.progress,
            _ => &mut self.writing,
        }
    }

    fn are_ready(&self) -> bool {
        let all = [self.reading, self.writing, self.progress];
        all.into_iter().any(CallState::is_due)
    }
}

/// What calls wait for that have a descriptor to wait with.
const INTERESTS: [StreamInterest; 3] = [
    StreamInterest::Readable,
    StreamInterest::Writable,
    StreamInterest::Progress,
];

impl Readiness {
    fn new<'a>(
        sources: impl IntoIterator<Item = BorrowedFd<'a>>,
        context: &Context,
    ) -> io::Result<Arc<Self>> {
        let directions = Mutex::new(Directions {
            // No call has looked yet.
            reading: CallState::Due,
            writing: CallState::None,
            progress: CallState::None,
            rechecks: 0,
            is_reader_gone: false,
        });
        Ok(Arc::new(Self {
            descriptor: Descriptor::new(sources)?,
            directions,
            context: context.clone(),
        }))
    }

    fn directions(&self) -> MutexGuard<'_, Directions> {
        self.directions.lock()
    }

    /// Makes the descriptor readable or not. In a forked child it stays as it is, for the parent.
    fn publish(&self, directions: &Directions) {
        if self.context.is_in_child() {
            return;
        }
        if directions.are_ready() {
            self.descriptor.set_ready();
        } else {
            self.descriptor.clear_ready();
        }
    }

    fn set(&self, interest: StreamInterest, state: CallState) {
        let mut directions = self.directions();
        let before = std::mem::replace(directions.of(interest), state);
        if before != state {
            self.publish(&directions);
        }
    }

    /// Writes are due no more. A thread that waits for one with the descriptor is woken once: the
    /// next read, or the write that it repeats, makes the descriptor quiet.
    fn give_up_writing(&self) {
        let mut directions = self.directions();
        let refused = [directions.writing, directions.progress];
        if refused.iter().any(|state| *state != CallState::None) {
            directions.writing = CallState::None;
            directions.progress = CallState::None;
            if !directions.is_reader_gone {
                directions.reading = CallState::Due;
            }
            self.publish(&directions);
        }
    }

    /// Reads are due no more, and never again.
    fn give_up_reading(&self) {
        let mut directions = self.directions();
        directions.is_reader_gone = true;
        directions.reading = CallState::None;
        self.publish(&directions);
    }

    /// If calls in a direction are due, which [`end_recheck`](Self::end_recheck) decides again, the
    /// number of this recheck. Whatever happens meanwhile counts instead.
    fn begin_recheck(&self, interest: StreamInterest) -> Option<u32> {
        let mut directions = self.directions();
        if !directions.of(interest).is_due() {
            return None;
        }
        let recheck = directions.rechecks.wrapping_add(1);
        directions.rechecks = recheck;
        *directions.of(interest) = CallState::Rechecked(recheck);
        Some(recheck)
    }

    /// The descriptor is not made readable once more if they still are: who waits for edges would be
    /// woken each time.
    fn end_recheck(&self, interest: StreamInterest, recheck: u32, is_due: bool) {
        let mut directions = self.directions();
        let state = directions.of(interest);
        if *state != CallState::Rechecked(recheck) {
            return;
        }
        if is_due {
            *state = CallState::Due;
        } else {
            *state = CallState::Waiting;
            self.publish(&directions);
        }
    }
}

impl Wake for Readiness {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Any direction may have been meant: a call finds that out.
    fn wake_by_ref(self: &Arc<Self>) {
        let mut directions = self.directions();
        for interest in INTERESTS {
            let state = directions.of(interest);
            if *state != CallState::None {
                *state = CallState::Due;
            }
        }
        self.publish(&directions);
    }
}

impl StreamConnection {
    /// A descriptor that is readable while something may have come for the stream.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self.readiness.get() {
            Some(readiness) => readiness.descriptor.fd(),
            None => self.event_loop().readiness(),
        }
    }

    /// From now on the stream has a descriptor of its own.
    pub(crate) fn make_descriptor(&self) -> io::Result<()> {
        if self.readiness.get().is_some() {
            return Ok(());
        }
        let context = self.queue_pair().device().context();
        let new = Readiness::new(self.sources(), context)?;
        // Another thread may have made one meanwhile.
        let readiness = self.readiness.get_or_init(|| new);
        let waker = Waker::from(Arc::clone(readiness));
        self.queue_pair().status().wake_descriptor(waker);
        // Another thread may have been refused since it was made.
        readiness.wake_by_ref();
        Ok(())
    }

    /// What makes the event loop find something for the stream.
    fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let device = self.queue_pair().device();
        // Open, as the event loop watches it, unless the device is gone. After that it stays readable.
        let completions = device.readiness().ok();
        [self.event_loop().channel().as_fd()]
            .into_iter()
            .chain(completions)
    }

    /// The owner is gone: the descriptor is never readable again.
    pub(super) fn end_descriptor(&self) {
        if let Some(readiness) = self.readiness.get() {
            readiness.descriptor.end(self.sources());
        }
    }

    /// A read has not had to wait. It may have left bytes, and the descriptor is readable until a
    /// call has found that there are none, or has returned the end.
    pub(crate) fn has_read(&self, is_end: bool) {
        let Some(readiness) = self.readiness.get() else {
            return;
        };
        if !is_end {
            return readiness.set(StreamInterest::Readable, CallState::Due);
        }
        readiness.set(StreamInterest::Readable, CallState::None);
        // What is left for the event loop keeps the descriptor readable, and no later read of this
        // stream would look: each returns the end at once.
        if self.event_loop().run_once() {
            readiness.set(StreamInterest::Readable, CallState::Due);
        }
        for other in [StreamInterest::Writable, StreamInterest::Progress] {
            self.recheck(readiness, other);
        }
    }

    /// This side writes no more, and so has given up what was refused.
    pub(crate) fn has_given_up_writing(&self) {
        if let Some(readiness) = self.readiness.get() {
            readiness.give_up_writing();
        }
    }

    /// This side reads no more: who waits with the descriptor waits to write.
    pub(crate) fn has_given_up_reading(&self) {
        if let Some(readiness) = self.readiness.get() {
            readiness.give_up_reading();
        }
    }

    /// A write has not had to wait. There mostly is room, which is no reason to write.
    pub(crate) fn has_written(&self, interest: StreamInterest) {
        if let Some(readiness) = self.readiness.get() {
            readiness.set(interest, CallState::None);
        }
    }

    /// For a caller in one direction, who perhaps makes no more calls in another one: the
    /// descriptor is not readable for bytes that have not come, for an update that this side
    /// cannot send, for room that there is not, or for a write that this side has given up by
    /// closing the direction.
    fn recheck(&self, readiness: &Readiness, interest: StreamInterest) {
        let queue_pair = self.queue_pair();
        let is_writing = interest != StreamInterest::Readable;
        if is_writing && queue_pair.has_closed_writing() {
            return readiness.set(interest, CallState::None);
        }
        let Some(recheck) = readiness.begin_recheck(interest) else {
            return;
        };
        queue_pair.arm_and_poll(interest);
        let is_due = match interest {
            StreamInterest::Readable => queue_pair.may_read(),
            StreamInterest::Writable => queue_pair.may_write(),
            _ => queue_pair.may_write_at(),
        };
        readiness.end_recheck(interest, recheck, is_due);
    }

    /// Handles what has come, instead of waiting for it, and calls `take` again, which has
    /// returned nothing. If it returns nothing once more, the descriptor becomes readable when
    /// the next call may return something.
    ///
    /// # Errors
    /// `WouldBlock` then, or why the event loop has failed.
    pub(crate) fn retry(
        &self,
        interest: StreamInterest,
        stage: Stage,
        mut take: impl FnMut() -> Option<Result<usize>>,
    ) -> io::Result<Result<usize>> {
        let event_loop = self.event_loop();
        let failures = event_loop.failures();
        if let Some(readiness) = self.readiness.get() {
            readiness.set(interest, CallState::Waiting);
            self.queue_pair().arm_and_poll(interest);
            for other in INTERESTS.into_iter().filter(|other| *other != interest) {
                self.recheck(readiness, other);
            }
        }
        let is_more = event_loop.run_once();
        loop {
            if let Some(outcome) = take() {
                return Ok(outcome);
            }
            if self.readiness.get().is_none() || !self.queue_pair().arm_and_poll(interest) {
                break;
            }
        }
        let failed = event_loop.failed_since(failures);
        failed.map_err(|error| self.fail_at_once(stage, error.into()))?;
        if let Some(readiness) = self.readiness.get().filter(|_| is_more) {
            readiness.set(interest, CallState::Due);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}
