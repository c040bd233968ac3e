//! Waiting until a read or a write need not wait.

use std::task::{Context, Poll};

use rdmacm_core::Deadline;

use super::connection::StreamConnection;
use super::receive_state::Reading;
use super::status::StreamInterest;
use super::wait;
use crate::error::{Cause, Error, Result};
use crate::event_loop::PollSlot;
use crate::stage::Stage;

impl StreamConnection {
    /// Waits until a read returns something, be it an error.
    pub(crate) async fn readable(&self) -> Result<()> {
        let mut look = || self.check_readable();
        self.ready(StreamInterest::Readable, &mut look).await
    }

    /// Waits until a write returns something, be it an error.
    pub(crate) async fn writable(&self) -> Result<()> {
        let mut look = || self.check_writable();
        self.ready(StreamInterest::Writable, &mut look).await
    }

    /// Polls as [`readable`](Self::readable) does.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut look = || self.check_readable();
        let interest = StreamInterest::Readable;
        self.poll_ready(&self.read_slot, interest, context, &mut look)
    }

    /// Polls as [`writable`](Self::writable) does.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut look = || self.check_writable();
        let interest = StreamInterest::Writable;
        self.poll_ready(&self.write_slot, interest, context, &mut look)
    }

    fn check_readable(&self) -> Option<()> {
        let look = || self.queue_pair().read(Reading::Check, &mut []);
        self.transfer(look).map(drop)
    }

    fn check_writable(&self) -> Option<()> {
        let look = || self.queue_pair().check_writable();
        self.transfer(look).map(drop)
    }

    async fn ready(
        &self,
        interest: StreamInterest,
        look: &mut (dyn FnMut() -> Option<()> + Send),
    ) -> Result<()> {
        if look().is_some() {
            return Ok(());
        }
        let attempt = self.attempt(Deadline::Never);
        let ready = self.wait(&attempt, interest, look).await;
        ready.map_err(|cause| self.not_ready(interest, cause))
    }

    fn poll_ready(
        &self,
        slot: &PollSlot,
        interest: StreamInterest,
        context: &mut Context<'_>,
        look: &mut dyn FnMut() -> Option<()>,
    ) -> Poll<Result<()>> {
        let ready = wait::poll(slot, self, interest, context, look);
        ready.map_err(|cause| self.not_ready(interest, cause))
    }

    /// The wait itself has failed, not the stream.
    fn not_ready(&self, interest: StreamInterest, cause: Cause) -> Error {
        let stage = match interest {
            StreamInterest::Readable => Stage::Receive,
            _ => Stage::Send,
        };
        self.fail_at_once(stage, cause)
    }
}
