//! Bytes a second.

use super::Test;
use super::load::{Arrived, Load};
use super::until::Until;
use crate::failure::Failure;
use crate::message::Message;
use crate::talk::Talk;

/// Requests without a pause, as many at once as agreed.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    load: &'a Load<'a>,
    /// Messages that the server has room for.
    room: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(load: &'a Load<'a>) -> Self {
        Self {
            load,
            room: match load.terms.test {
                Test::SendBw => 2 * u64::from(load.terms.depth),
                // The server takes part in nothing else.
                _ => u64::MAX,
            },
        }
    }

    /// Goes on until it is enough and all of it has arrived; `done` is told of each.
    pub(super) async fn run(
        &mut self,
        until: Until,
        mut done: impl FnMut(),
    ) -> Result<(), Failure> {
        let (mut posted, mut under_way) = (0, 0);
        loop {
            while self.room > 0 && under_way < self.load.terms.depth && until.goes_on(posted) {
                self.load.post()?;
                self.room -= 1;
                posted += 1;
                under_way += 1;
            }
            if under_way == 0 && !until.goes_on(posted) {
                break;
            }
            if self.has_done_one().await? {
                under_way -= 1;
                done();
            }
        }
        // On iWARP a request is done when it is on its way.
        self.load.post_confirmation()?;
        while !self.has_done_one().await? {}
        Ok(())
    }

    /// Waits for what comes next: a request is done, or the server has more room.
    async fn has_done_one(&mut self) -> Result<bool, Failure> {
        let arrived = self.load.next().await?;
        if let Arrived::Message = arrived {
            self.room += u64::from(self.load.terms.depth);
        }
        Ok(matches!(arrived, Arrived::Request))
    }
}

/// Receives what is sent until the client has finished, and says so each time that there is as much room again as
/// may be under way. iWARP ends a connection where there is none.
///
/// A client that has finished disconnects, and from then on nothing can be posted. What it
/// sent before is read all the same: that it has finished is the last of it.
pub(super) async fn receive(load: &Load<'_>) -> Result<(), Failure> {
    let talk = Talk::new(load.endpoint);
    let mut received = 0_u32;
    let mut refused = None;
    loop {
        let (arrived, made_room) = match load.next_of_what_was_sent().await {
            Ok(next) => next,
            Err(failure) => return Err(refused.unwrap_or(failure)),
        };
        match arrived {
            Arrived::Message => received += 1,
            Arrived::Request => {}
            Arrived::Finish => return Ok(()),
        }
        let mut posted = made_room;
        if posted.is_ok() && received == load.terms.depth {
            posted = talk.say(Message::GO_AHEAD).map(drop);
            received = 0;
        }
        refused = refused.or(posted.err());
    }
}
