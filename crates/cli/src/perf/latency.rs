//! How long one thing at a time takes.

use std::time::{Duration, Instant};

use super::Test;
use super::load::{Arrived, Load};
use super::until::Until;
use crate::failure::Failure;

/// One request after the other.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    load: &'a Load<'a>,
    /// The last byte of what is written: even on its way there and odd on its way
    /// back, so that nobody takes his own for the other's.
    mark: u8,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(load: &'a Load<'a>) -> Self {
        Self { load, mark: 0 }
    }

    /// Goes on until it is enough; `taken` is told of each.
    pub(super) async fn run(
        &mut self,
        until: Until,
        mut taken: impl FnMut(Duration),
    ) -> Result<(), Failure> {
        let mut so_far = 0;
        while until.goes_on(so_far) {
            taken(self.round().await?);
            so_far += 1;
        }
        Ok(())
    }

    async fn round(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        match self.load.terms.test {
            Test::SendLat => {
                self.load.post()?;
                while !matches!(self.load.next().await?, Arrived::Message) {}
            }
            Test::WriteLat => {
                let there = self.mark.wrapping_add(2);
                self.mark = there;
                self.load.set_last_byte(there);
                return self.write(there.wrapping_add(1), began).await;
            }
            _ => {
                self.load.post()?;
                self.load.next().await?;
            }
        }
        Ok(began.elapsed())
    }

    /// Writes, and waits for the other side's mark, and then for the write's own end,
    /// which is not part of the time.
    async fn write(&mut self, back: u8, began: Instant) -> Result<Duration, Failure> {
        self.load.post()?;
        let seen = see(self.load, back).await?;
        let taken = began.elapsed();
        if let Seen::Mark = seen {
            self.load.next().await?;
        }
        Ok(taken)
    }
}

/// Sends back what comes, until the client has finished.
pub(super) async fn send_back(load: &Load<'_>) -> Result<(), Failure> {
    loop {
        match load.next().await? {
            Arrived::Message => load.post()?,
            Arrived::Request => {}
            Arrived::Finish => return Ok(()),
        }
    }
}

/// Writes back what is written, until the client has finished.
pub(super) async fn write_back(load: &Load<'_>) -> Result<(), Failure> {
    let mut there = 2_u8;
    loop {
        if let Seen::Finish = see(load, there).await? {
            return Ok(());
        }
        load.set_last_byte(there.wrapping_add(1));
        load.post()?;
        // The client may have seen it, and finished, before this side hears that.
        if let Arrived::Finish = load.next().await? {
            return Ok(());
        }
        there = there.wrapping_add(2);
    }
}

/// What was seen first.
enum Seen {
    /// The other side's mark, while this side's request is under way.
    Mark,
    /// The other side's mark, and this side's request is done.
    MarkAndRequest,
    /// The client has finished.
    Finish,
}

/// Looks until the other side's mark is there.
async fn see(load: &Load<'_>, mark: u8) -> Result<Seen, Failure> {
    let mut seen = Seen::Mark;
    while load.last_byte() != mark {
        match load.poll()? {
            Some(Arrived::Request) => seen = Seen::MarkAndRequest,
            Some(Arrived::Finish) => return Ok(Seen::Finish),
            Some(Arrived::Message) | None => {}
        }
        load.endpoint.give_way().await;
    }
    Ok(seen)
}
