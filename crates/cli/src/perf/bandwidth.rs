//! Tests of bandwidth.

use super::Test;
use super::side::{TestEvent, TestSide};
use super::test_end::TestEnd;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::message::Message;

/// Posts requests without a pause, as many in flight as agreed.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    side: &'a TestSide<'a>,
    /// Messages that the server has receive requests for.
    credits: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(side: &'a TestSide<'a>) -> Self {
        Self {
            side,
            credits: match side.parameters.test {
                Test::SendBw => 2 * u64::from(side.parameters.depth),
                // One-sided requests need no receive requests.
                _ => u64::MAX,
            },
        }
    }

    /// Runs until `until` and until all requests have arrived; calls `done` for each.
    pub(super) async fn run(
        &mut self,
        until: TestEnd,
        mut done: impl FnMut(),
    ) -> Result<(), Failure> {
        let (mut posted, mut in_flight) = (0, 0);
        loop {
            while self.credits > 0
                && in_flight < self.side.parameters.depth
                && until.is_ahead_of(posted)
            {
                self.side.post()?;
                self.credits -= 1;
                posted += 1;
                in_flight += 1;
            }
            if in_flight == 0 && !until.is_ahead_of(posted) {
                break;
            }
            if self.has_completed_one().await? {
                in_flight -= 1;
                done();
            }
        }
        // On iWARP a request completes when it is sent, not when it has arrived.
        self.side.post_confirmation()?;
        while !self.has_completed_one().await? {}
        Ok(())
    }

    /// Waits for the next event: the completion of a request, or more credits.
    async fn has_completed_one(&mut self) -> Result<bool, Failure> {
        let arrived = self.side.next().await?;
        if let TestEvent::Message = arrived {
            let credits = u64::from(self.side.parameters.depth);
            self.credits = self.credits.saturating_add(credits);
        }
        Ok(matches!(arrived, TestEvent::Request))
    }
}

/// Receives until the client ends the test, and sends it credits each time that `depth`
/// receive requests are posted again. iWARP ends a connection whose messages find none.
///
/// A client that ends the test disconnects, and from then on posting fails. Reads what it
/// sent before all the same: the last message is the one that ends the test.
pub(super) async fn receive(side: &TestSide<'_>) -> Result<(), Failure> {
    let exchange = Exchange::new(side.endpoint);
    let mut received = 0_u32;
    let mut refused = None;
    loop {
        let (arrived, reposted) = match side.next_even_if_behind().await {
            Ok(next) => next,
            Err(failure) => return Err(refused.unwrap_or(failure)),
        };
        match arrived {
            TestEvent::Message => received += 1,
            TestEvent::Request => {}
            TestEvent::Finish => return Ok(()),
        }
        let mut posted = reposted;
        if posted.is_ok() && received == side.parameters.depth {
            posted = exchange.send(Message::GO_AHEAD).map(drop);
            received = 0;
        }
        refused = refused.or(posted.err());
    }
}
