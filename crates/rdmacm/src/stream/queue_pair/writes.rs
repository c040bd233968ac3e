//! Writing what there is room for.

use std::io::IoSlice;

use super::StreamQueuePair;
use super::completions::ALL;
use crate::event_loop::Wakers;
use crate::stream::refusal::Refusal;
use crate::stream::send_state::SendState;
use crate::stream::slices::Slices;

impl StreamQueuePair {
    /// Writes what there is room for; `None` if there is none.
    pub(in crate::stream) fn write(
        &self,
        slices: &[IoSlice<'_>],
    ) -> Option<Result<usize, Refusal>> {
        self.post(|send| {
            let bytes = send.write(&self.queue_pair, Slices::new(slices))?;
            Ok((bytes > 0).then_some(bytes))
        })
    }

    /// Whether this side has closed the direction of writing, before the peer has closed both.
    pub(in crate::stream) fn has_closed_writing(&self) -> bool {
        if self.status.is_open() {
            return false;
        }
        let shutdown = self.status().shutdown;
        !shutdown.can_write() && !shutdown.peer_disconnected()
    }

    /// Whether a write would return something.
    pub(in crate::stream) fn may_write(&self) -> bool {
        self.refused_write().is_some() || self.send.lock().is_writable()
    }

    /// Whether a write at an offset, or a map, would perhaps return something.
    pub(in crate::stream) fn may_write_at(&self) -> bool {
        self.refused_write().is_some() || self.send.lock().has_room_at_offsets_or_to_map()
    }

    /// No bytes if there is room for one; `None` if there is none.
    pub(in crate::stream) fn check_writable(&self) -> Option<Result<usize, Refusal>> {
        self.post(|send| Ok(send.is_writable().then_some(0)))
    }

    /// Posts what there is room for; `None` if there is none. Handles what has completed
    /// before.
    #[inline]
    pub(super) fn post(
        &self,
        post: impl FnOnce(&mut SendState) -> Result<Option<usize>, Refusal>,
    ) -> Option<Result<usize, Refusal>> {
        let mut wakers = Wakers::default();
        let mut send = self.send.lock();
        let mut is_writable = send.is_writable();
        // Mostly the peer has sent nothing, and there is room.
        if !is_writable || self.receives.may_have_any() {
            drop(send);
            self.handle_peer_messages(is_writable, &mut wakers);
            send = self.send.lock();
            is_writable = send.is_writable();
        }
        let mut outcome = self.refused_write().map(Err);
        if outcome.is_none() {
            // Several at once, unless they alone report a failure.
            let must_look = self.receives.is_shared() && self.sends.has_completions();
            if must_look || !is_writable || send.is_half_full() {
                self.poll_sends(&mut send, &mut wakers);
            }
            let written = send.written();
            outcome = post(&mut send).transpose();
            if let Some(Err(Refusal::Failed(failure))) = &outcome {
                self.fail(failure.clone(), &mut wakers);
            }
            if send.is_answer_due && send.written() > written {
                send.is_answer_due = false;
                self.status().keep_alive.peer_is_awake();
            }
        }
        drop(send);
        wakers.wake();
        outcome
    }

    /// Why nothing may be written any more, if that is so.
    #[inline]
    fn refused_write(&self) -> Option<Refusal> {
        if self.status.is_open() {
            None
        } else {
            self.write_refusal()
        }
    }

    #[cold]
    fn write_refusal(&self) -> Option<Refusal> {
        let status = self.status();
        if !status.shutdown.can_write() {
            return Some(Refusal::ShutDown);
        }
        status.failure().cloned().map(Refusal::Failed)
    }

    /// Handles what the peer has sent. A caller that can write leaves that to another one that
    /// reads; one that is about to wait must know.
    fn handle_peer_messages(&self, is_writable: bool, wakers: &mut Wakers) {
        let receive = if is_writable {
            self.receive.try_lock()
        } else {
            Some(self.receive.lock())
        };
        if let Some(mut receive) = receive {
            self.poll_receives(&mut receive, ALL, wakers);
            self.update_peer(&mut receive, wakers);
        }
    }
}
