//! Waiting for completions.

use std::time::Instant;

use rdmacm_abi::uverbs::ReqNotifyCq;
use rdmacm_core::Deadline;

use super::CompletionQueue;
use crate::completion::Completion;
use crate::completion_channel::CompletionChannel;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::provider::CompletionRing;

impl CompletionQueue {
    /// Requests a notification on the channel for the next completion; with
    /// `solicited_only`, for the next solicited one. siw ignores that and notifies for any. rxe
    /// notifies of no failed send request then, and newer kernels than 6.1 of no flushed receive
    /// request: a wait for solicited messages alone need not end with the connection. Completions that are already in the queue cause no notification: poll once
    /// more after this, then wait. Source: `ibv_req_notify_cq(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] without a channel; [`Error::Command`].
    #[doc(alias = "ibv_req_notify_cq")]
    pub fn arm(&self, solicited_only: bool) -> Result<()> {
        if self.0.channel.is_none() {
            let reason = "it was made without a completion channel";
            return Err(Error::invalid(Operation::Arm, reason));
        }
        let uverbs = self.context().uverbs();
        if uverbs.is_in_child() {
            return Err(uverbs.closed_error());
        }
        // Not while the command is carried out: other threads may poll meanwhile.
        let is_armed = self.state().is_some_and(|mut state| state.ring.arm());
        if is_armed {
            return Ok(());
        }
        let request = ReqNotifyCq {
            handle: self.0.handle,
            solicited_only: solicited_only.into(),
        };
        uverbs.ask(Operation::Arm, &request).map(drop)
    }

    /// Waits for the next completion; `None` if the deadline passes. Polls a few times before it
    /// sleeps if [`CqOptions::polls_before_sleep`](super::CqOptions::polls_before_sleep) says so.
    /// Source: `rdma_get_send_comp(3)`, `rdma_get_recv_comp(3)`.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll) and [`arm`](Self::arm);
    /// [`Error::InvalidInput`] if its channel has other queues, whose notifications this
    /// would take.
    #[doc(alias = "rdma_get_send_comp", alias = "rdma_get_recv_comp")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<Completion>> {
        if let Some(completion) = self.poll()? {
            return Ok(Some(completion));
        }
        let until = match deadline.into() {
            Deadline::Never => None,
            deadline => deadline.until(Instant::now()),
        };
        if let Some(completion) = self.poll_until(until)? {
            return Ok(Some(completion));
        }
        match self.wait(until) {
            // Outstanding requests are returned first.
            Err(error) if error.is_context_closed() => self.poll(),
            waited => waited,
        }
    }

    /// Polls as often as before a sleep, unless the time passes.
    fn poll_until(&self, until: Option<Instant>) -> Result<Option<Completion>> {
        /// To look at the clock takes about as long as a poll.
        const POLLS_PER_CLOCK_READ: u32 = 64;
        for number in 0..self.0.polls {
            let looks = number % POLLS_PER_CLOCK_READ == 0;
            if looks && until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            std::hint::spin_loop();
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
        }
        Ok(None)
    }

    fn wait(&self, until: Option<Instant>) -> Result<Option<Completion>> {
        let channel = self.own_channel()?;
        let Some(_guard) = self.0.leader.wait_to_lead(until) else {
            return self.poll();
        };
        loop {
            if !channel.is_notification_due() {
                self.arm_once(channel)?;
            }
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            if !channel.wait(until)? {
                // The kernel drops a notification for which it has no memory
                // (`ib_uverbs_comp_handler`): the next wait requests another one.
                channel.clear_notification_due();
                return self.poll();
            }
            // A notification of another queue would be lost, as that of one which is added just
            // now still is.
            self.own_channel()?;
            // One notification, if there is one: the queue is armed once for each.
            let _ = channel.try_next();
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
        }
    }

    /// Requests a notification, and notes that it is due. That is noted first: another thread may
    /// take the notification as soon as it is requested, and then none is due any more.
    fn arm_once(&self, channel: &CompletionChannel) -> Result<()> {
        channel.set_notification_due();
        let armed = self.arm(false);
        if armed.is_err() {
            channel.clear_notification_due();
        }
        armed
    }

    /// Its completion channel, checked to have no other queue.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the channel has another queue, or there is no channel.
    pub fn own_channel(&self) -> Result<&CompletionChannel> {
        let reason = match &self.0.channel {
            None => "it was made without a completion channel",
            Some(channel) if channel.queues() > 1 => "its completion channel has other queues too",
            Some(channel) => return Ok(channel),
        };
        Err(Error::invalid(Operation::Wait, reason))
    }
}
