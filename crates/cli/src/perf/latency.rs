//! Tests of latency.

use std::time::{Duration, Instant};

use super::Test;
use super::side::{TestEvent, TestSide};
use super::test_end::TestEnd;
use crate::failure::Failure;

/// Posts one request after the other.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    side: &'a TestSide<'a>,
    /// The last byte of what is written: even from client to server and odd from server to
    /// client, so that no side takes its own for the other's.
    mark: u8,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(side: &'a TestSide<'a>) -> Self {
        Self { side, mark: 0 }
    }

    /// Runs until `until`; calls `taken` with the time of each.
    pub(super) async fn run(
        &mut self,
        until: TestEnd,
        mut taken: impl FnMut(Duration),
    ) -> Result<(), Failure> {
        let mut so_far = 0;
        while until.is_ahead_of(so_far) {
            taken(self.round().await?);
            so_far += 1;
        }
        Ok(())
    }

    async fn round(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        match self.side.parameters.test {
            Test::SendLat => {
                self.side.post()?;
                while !matches!(self.side.next().await?, TestEvent::Message) {}
            }
            Test::WriteLat => {
                let there = self.mark.wrapping_add(2);
                self.mark = there;
                self.side.set_last_byte(there);
                return self.write(there.wrapping_add(1), began).await;
            }
            _ => {
                self.side.post()?;
                self.side.next().await?;
            }
        }
        Ok(began.elapsed())
    }

    /// Writes, and waits for the other side's mark. Then waits for the completion of the
    /// write, which the time does not include.
    async fn write(&mut self, back: u8, began: Instant) -> Result<Duration, Failure> {
        self.side.post()?;
        let seen = wait_for_mark(self.side, back).await?;
        let taken = began.elapsed();
        if let Seen::Mark = seen {
            self.side.next().await?;
        }
        Ok(taken)
    }
}

/// Answers each message until the client ends the test.
pub(super) async fn send_back(side: &TestSide<'_>) -> Result<(), Failure> {
    loop {
        match side.next().await? {
            TestEvent::Message => side.post()?,
            TestEvent::Request => {}
            TestEvent::Finish => return Ok(()),
        }
    }
}

/// Answers each write until the client ends the test.
pub(super) async fn write_back(side: &TestSide<'_>) -> Result<(), Failure> {
    let mut there = 2_u8;
    loop {
        if let Seen::Finish = wait_for_mark(side, there).await? {
            return Ok(());
        }
        side.set_last_byte(there.wrapping_add(1));
        side.post()?;
        // The client may end the test before the write completes here.
        if let TestEvent::Finish = side.next().await? {
            return Ok(());
        }
        there = there.wrapping_add(2);
    }
}

/// What [`wait_for_mark`] found.
enum Seen {
    /// The other side's mark, while this side's request is in flight.
    Mark,
    /// The other side's mark, after this side's request completed.
    MarkAndRequest,
    /// The client ended the test.
    Finish,
}

/// Polls memory until the other side's mark is there.
async fn wait_for_mark(side: &TestSide<'_>, mark: u8) -> Result<Seen, Failure> {
    let mut seen = Seen::Mark;
    while side.last_byte() != mark {
        match side.poll()? {
            Some(TestEvent::Request) => seen = Seen::MarkAndRequest,
            Some(TestEvent::Finish) => return Ok(Seen::Finish),
            Some(TestEvent::Message) | None => {}
        }
        side.endpoint.yield_sometimes().await;
    }
    Ok(seen)
}
