//! Peers that are being accepted, several at a time.

use std::future::Future as _;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use rdmacm_core::{ConnParam, Deadline, Error};

use super::handle::StreamHandle;
use super::handshake::PendingStream;
use super::options::StreamOptions;
use crate::connect::{ACCEPT_DEADLINE, Attempt};
use crate::error::{Result, Target};
use crate::event_loop::{WaitSource, WaiterQueue, wait_for};
use crate::listen::{ListeningIds, Request};
use crate::stage::Stage;

/// How many handshakes are under way at a time. A peer that does not complete its handshake
/// occupies one of them until its deadline.
const MAX_HANDSHAKES: usize = 64;

/// The handshakes of a listener, which any caller that waits for a stream drives.
#[derive(Debug, Default)]
pub(crate) struct PendingHandshakes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pending: Vec<PendingStream>,
    /// Callers that wait for a stream: each waits for all handshakes.
    waiters: WaiterQueue,
    /// How often a handshake was added, or has made room.
    changes: u64,
}

/// What a caller does next.
enum Step {
    Stream(StreamHandle),
    Request(Request),
    /// Another caller has added a handshake, or one has ended.
    Again,
}

impl PendingHandshakes {
    /// Waits for the next stream. A handshake that a peer does not complete, or gets wrong, is
    /// no error here: the peer learns of it.
    pub(crate) async fn accept(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
        deadline: Deadline,
    ) -> Result<StreamHandle> {
        let until = deadline.until(ids.event_loop().now());
        loop {
            match self.step(ids, until).await? {
                Step::Stream(stream) => return Ok(stream),
                Step::Request(request) => self.begin(ids, request, options)?,
                Step::Again => {}
            }
        }
    }

    async fn step(&self, ids: &ListeningIds, until: Option<Instant>) -> Result<Step> {
        let (is_full, changes, first) = {
            let state = self.state();
            (state.is_full(), state.changes, state.first_deadline())
        };
        let event_loop = ids.event_loop();
        let by = [until, first].into_iter().flatten().min();
        let source = HandshakeSource { all: self, changes };
        let mut handshakes = pin!(wait_for(event_loop, source, by));
        let request = async {
            if is_full {
                Err(ids.end().await)
            } else {
                ids.next_request(until.map_or(Deadline::Never, Deadline::At))
                    .await
            }
        };
        let mut request = pin!(request);
        std::future::poll_fn(|context| {
            match handshakes.as_mut().poll(context) {
                Poll::Ready(Ok(Some(Ok(stream)))) => return Poll::Ready(Ok(Step::Stream(stream))),
                Poll::Ready(Ok(_)) => return Poll::Ready(Ok(Step::Again)),
                Poll::Ready(Err(Error::DeadlinePassed)) if by != until => {
                    self.state().expire(event_loop.now());
                    return Poll::Ready(Ok(Step::Again));
                }
                Poll::Ready(Err(error)) => {
                    let attempt = Attempt::new(event_loop, None, ids.address().into());
                    return Poll::Ready(Err(attempt.fail(Stage::Accept, error)));
                }
                Poll::Pending => {}
            }
            request.as_mut().poll(context).map_ok(Step::Request)
        })
        .await
    }

    /// Accepts a request. What fails on this side is an error, such as memory that cannot be
    /// registered.
    fn begin(&self, ids: &ListeningIds, request: Request, options: &StreamOptions) -> Result<()> {
        let attempt = Attempt::until(ids.event_loop(), ACCEPT_DEADLINE.into(), Target::default());
        let begun = PendingStream::begin(attempt, request, ConnParam::new(), options);
        let pending = match begun {
            Ok(pending) => pending,
            Err(error) if error.stage() == Stage::Establish => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut state = self.state();
        state.pending.push(pending);
        let wakers = state.changed();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_full(&self) -> bool {
        self.pending.len() >= MAX_HANDSHAKES
    }

    fn first_deadline(&self) -> Option<Instant> {
        let deadlines = self.pending.iter().map(|one| one.accepting().attempt.until);
        deadlines.flatten().min()
    }

    /// A handshake was added, or has made room. Returns the wakers of all callers, which are woken
    /// without the lock.
    #[must_use]
    fn changed(&mut self) -> Vec<Waker> {
        self.changes += 1;
        self.waiters.iter().cloned().collect()
    }

    /// Gives up on peers that have not completed their handshake in time.
    fn expire(&mut self, now: Instant) {
        self.pending.retain(|one| {
            let until = one.accepting().attempt.until;
            until.is_none_or(|until| until > now)
        });
    }

    /// The outcome of a handshake that has ended.
    fn next(&mut self) -> Option<Result<StreamHandle>> {
        for index in 0..self.pending.len() {
            while let Some(event) = self
                .pending
                .get(index)
                .and_then(|one| one.accepting().id.queue().pop())
            {
                match self.pending.swap_remove(index).handle(event) {
                    Ok(pending) => {
                        self.pending.push(pending);
                        let last = self.pending.len() - 1;
                        self.pending.swap(index, last);
                    }
                    Err(outcome) => return Some(outcome),
                }
            }
        }
        None
    }
}

/// The outcomes of all handshakes, and that one was added, or has made room.
struct HandshakeSource<'a> {
    all: &'a PendingHandshakes,
    changes: u64,
}

impl WaitSource for HandshakeSource<'_> {
    /// `None` if a handshake was added, or has made room.
    type Item = Option<Result<StreamHandle>>;

    fn take(&mut self) -> Option<Self::Item> {
        let mut state = self.all.state();
        let was_full = state.is_full();
        if let Some(outcome) = state.next() {
            let wakers = if was_full {
                state.changed()
            } else {
                Vec::new()
            };
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            return Some(Some(outcome));
        }
        (state.changes != self.changes).then_some(None)
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let mut state = self.all.state();
        for pending in &state.pending {
            pending.accepting().id.queue().register(key, waker);
        }
        let replaced = state.waiters.add(key, waker);
        drop(state);
        drop(replaced);
    }

    fn deregister(&mut self, key: u64) {
        let mut state = self.all.state();
        for pending in &state.pending {
            pending.accepting().id.queue().deregister(key);
        }
        let waiter = state.waiters.remove(key);
        drop(state);
        drop(waiter);
    }
}
