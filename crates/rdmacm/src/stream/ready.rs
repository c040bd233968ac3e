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
        let mut check = || self.check_readable();
        self.ready(StreamInterest::Readable, &mut check).await
    }

    /// Waits until a write returns something, be it an error.
    pub(crate) async fn writable(&self) -> Result<()> {
        let mut check = || self.check_writable();
        self.ready(StreamInterest::Writable, &mut check).await
    }

    /// Polls as [`readable`](Self::readable) does.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut check = || self.check_readable();
        let interest = StreamInterest::Readable;
        self.poll_ready(&self.read_slot, interest, context, &mut check)
    }

    /// Polls as [`writable`](Self::writable) does.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut check = || self.check_writable();
        let interest = StreamInterest::Writable;
        self.poll_ready(&self.write_slot, interest, context, &mut check)
    }

    fn check_readable(&self) -> Option<()> {
        let check = || self.queue_pair().read(Reading::Check, &mut []);
        self.transfer(check).map(drop)
    }

    fn check_writable(&self) -> Option<()> {
        let check = || self.queue_pair().check_writable();
        self.transfer(check).map(drop)
    }

    async fn ready(
        &self,
        interest: StreamInterest,
        check: &mut (dyn FnMut() -> Option<()> + Send),
    ) -> Result<()> {
        if check().is_some() {
            return Ok(());
        }
        let attempt = self.attempt(Deadline::Never);
        let ready = self.wait(&attempt, interest, check).await;
        ready.map_err(|cause| self.not_ready(interest, cause))
    }

    fn poll_ready(
        &self,
        slot: &PollSlot,
        interest: StreamInterest,
        context: &mut Context<'_>,
        check: &mut (dyn FnMut() -> Option<()> + Send),
    ) -> Poll<Result<()>> {
        let ready = wait::poll(slot, self, interest, context, check);
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
