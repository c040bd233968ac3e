//! What stories see of the pair: each waits for what concerns it, all of them
//! at the same time.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::bail;

use super::act::Turn;
use super::pair::Pair;
use super::side::Side;
use super::soft::Soft;
use crate::guest::Station;

/// One pair of guests, shared by all the stories of an act.
pub(super) struct Stage {
    pub(super) pair: RefCell<Pair>,
    /// How many turns of the act are over.
    turns: Cell<usize>,
    /// How many stories wait for the next one.
    waiting: Cell<usize>,
    /// The last uid, port and queue pair number that was given away.
    numbers: Cell<u16>,
}

impl Stage {
    pub(super) fn new(pair: Pair) -> Self {
        Self {
            pair: RefCell::new(pair),
            turns: Cell::new(0),
            waiting: Cell::new(0),
            numbers: Cell::new(20_000),
        }
    }

    /// Another act begins.
    pub(super) fn begin(&self) {
        self.turns.set(0);
        self.waiting.set(0);
    }

    /// How many stories wait for the next turn.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Takes the next turn: whoever waits for it goes on.
    pub(super) fn turn(&self, turn: Turn) -> anyhow::Result<()> {
        let mut pair = self.pair.borrow_mut();
        match turn {
            Turn::Freeze => pair.freeze()?,
            Turn::Thaw => pair.thaw()?,
            Turn::Kill => pair.kill(),
            Turn::Restart => pair.restart()?,
            Turn::Plug => pair.plug()?,
            Turn::Nothing => {}
        }
        self.turns.set(self.turns.get() + 1);
        self.waiting.set(0);
        Ok(())
    }

    /// Listens to both guests for a moment.
    pub(super) fn listen(&self) -> anyhow::Result<()> {
        self.pair.borrow_mut().listen()
    }

    /// Ends both guests in order.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.pair.into_inner().end()
    }

    /// A number that nobody has: a uid, a port, a made-up queue pair.
    pub(super) fn number(&self) -> u16 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }
}

/// One story's place on the stage.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    pub(super) stage: &'s Stage,
    pub(super) soft: Soft,
}

impl<'s> Scene<'s> {
    /// The guest that lives on.
    pub(super) const fn near(self) -> Side<'s> {
        Side::new(self, Station::Near)
    }

    /// The guest whose turn it is.
    pub(super) const fn far(self) -> Side<'s> {
        Side::new(self, Station::Far)
    }

    /// Waits for the act's next turn, which comes when every story that is not
    /// over waits for it.
    pub(super) async fn turn(self) {
        let stage = self.stage;
        let before = stage.turns.get();
        stage.waiting.set(stage.waiting.get() + 1);
        poll_fn(|_| {
            if stage.turns.get() > before {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Waits until something is there, but not for ever.
    pub(super) async fn until<T>(
        self,
        within: Duration,
        what: &str,
        mut look: impl FnMut(&mut Pair) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let end = Instant::now() + within;
        let found = poll_fn(|_| match look(&mut self.stage.pair.borrow_mut()) {
            Ok(None) if Instant::now() < end => Poll::Pending,
            found => Poll::Ready(found),
        });
        match found.await? {
            Some(found) => Ok(found),
            None => bail!("{what}: not there after {} s", within.as_secs()),
        }
    }
}
