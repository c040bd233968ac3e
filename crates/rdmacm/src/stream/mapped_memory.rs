//! Memory that one side maps, and the other one writes at an offset.

use std::io;

use rdmacm_core::Deadline;
use rdmacm_verbs::RemoteAccessRegion;

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::{Cause, Result};
use crate::stage::Stage;

impl StreamConnection {
    /// Registers memory, and tells the peer that it may write there at an offset.
    pub(crate) async fn map(&self, length: usize, offset: u64) -> io::Result<RemoteAccessRegion> {
        let fail = |cause| self.fail_at_once(Stage::Register, cause);
        let end = u32::try_from(length).map(|length| offset.checked_add(length.into()));
        if !end.is_ok_and(|end| end.is_some()) {
            return Err(fail(Cause::NotMappable).into());
        }
        if !self.queue_pair().has_map_entry() {
            return Err(fail(Cause::NoMapEntry).into());
        }
        let memory = self.queue_pair().expose(length);
        let memory = memory.map_err(|error| fail(Cause::device(error)))?;
        let mut map = || self.transfer(|| self.queue_pair().map(&memory, offset));
        let interest = StreamInterest::Progress;
        self.progress(interest, Stage::Register, &mut map).await?;
        Ok(memory)
    }

    /// Writes into memory that the peer has mapped, once there is room.
    pub(crate) async fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut write = || self.transfer(|| self.queue_pair().write_at(bytes, offset));
        let interest = StreamInterest::Progress;
        self.progress(interest, Stage::Write, &mut write).await
    }

    /// Writes all of it.
    pub(crate) async fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest @ [_, ..]) = bytes.get(done..) {
            done += self
                .write_at(rest, offset.saturating_add(done as u64))
                .await?;
        }
        Ok(())
    }

    /// Transfers as soon as there is progress, within the timeout of writing. What the descriptor
    /// announces if calls do not wait is `announced`.
    pub(super) async fn progress(
        &self,
        announced: StreamInterest,
        stage: Stage,
        take: &mut (dyn FnMut() -> Option<Result<usize, Cause>> + Send),
    ) -> io::Result<usize> {
        if let Some(outcome) = take() {
            self.has_written(announced);
            return Ok(outcome.map_err(|cause| self.fail_at_once(stage, cause))?);
        }
        let deadline: Option<Deadline> = self.timeouts().write_deadline();
        let Some(deadline) = deadline else {
            let take = || Some(take()?.map_err(|cause| self.fail_at_once(stage, cause)));
            let outcome = self.retry(announced, stage, take)?;
            self.has_written(announced);
            return Ok(outcome?);
        };
        let interest = StreamInterest::Progress;
        Ok(self.transfer_next(deadline, interest, stage, take).await?)
    }
}
