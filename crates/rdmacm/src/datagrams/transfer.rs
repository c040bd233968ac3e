//! Sending and receiving.

use std::io::IoSlice;

use rdmacm_core::Deadline;
use rdmacm_verbs::SendOperation;

use super::address::DatagramAddr;
use super::datagram::Datagram;
use super::socket::Socket;
use crate::attempt::Attempt;
use crate::data::Failure;
use crate::error::{Cause, Result, Target};
use crate::messages::{Destination, Interest, MessageQueuePair};
use crate::stage::Stage;

impl Socket {
    /// An attempt that begins now.
    pub(crate) fn attempt(&self, deadline: Deadline) -> Attempt {
        Attempt::until(self.id.event_loop(), deadline, Target::default())
    }

    /// An attempt with the deadline for transfers.
    fn transfer_attempt(&self) -> Attempt {
        let deadline = self.queue_pair.state().deadline();
        self.attempt(deadline)
    }

    pub(crate) async fn send(
        &self,
        operation: SendOperation,
        bytes: &[u8],
        to: &DatagramAddr,
    ) -> Result<()> {
        let attempt = self.transfer_attempt();
        let slices = [IoSlice::new(bytes)];
        let sent = self.try_send(&attempt, operation, &slices, to).await;
        sent.map_err(|cause| self.fail(&attempt, Stage::Send, cause))
    }

    async fn try_send(
        &self,
        attempt: &Attempt,
        operation: SendOperation,
        slices: &[IoSlice<'_>],
        to: &DatagramAddr,
    ) -> Result<(), Cause> {
        check_length(length(slices), self.longest)?;
        let domain = self.queue_pair.protection_domain();
        let to = Destination {
            address: self
                .handles
                .get(attempt, domain, self.id.id(), to.ah_attr)
                .await?,
            qp_number: to.qp_number,
            qkey: to.qkey,
        };
        self.send_to(attempt, operation, slices, &to).await
    }

    /// Sends the slices as one datagram.
    pub(crate) async fn send_to(
        &self,
        attempt: &Attempt,
        operation: SendOperation,
        slices: &[IoSlice<'_>],
        to: &Destination,
    ) -> Result<(), Cause> {
        let bytes = length(slices);
        // The port's MTU may have become smaller since the socket was opened.
        let longest = usize::try_from(to.address.max_message()).unwrap_or(usize::MAX);
        check_length(bytes, longest.min(self.longest))?;
        let reserved = self.wait(attempt, Interest::SendReady, |socket| {
            socket.poll_with(|state, closed| match closed {
                Some(cause) => Some(Err(cause)),
                None => MessageQueuePair::reserve_copy(state, bytes).map(Ok),
            })
        });
        let reservation = reserved.await??;
        let posted = self
            .queue_pair
            .post_copy(reservation, operation, slices, Some(to));
        posted.map_err(|error| self.not_posted(error))
    }

    /// Why a request was not posted: another one may have failed meanwhile.
    #[cold]
    fn not_posted(&self, error: rdmacm_verbs::Error) -> Cause {
        if !self.queue_pair.is_refused_closed(&error) {
            return Cause::device(error);
        }
        self.queue_pair.fail(Failure::Refused(error));
        self.closed().unwrap_or(Cause::QueuePairFailed)
    }

    /// Why nothing more can be transferred.
    pub(crate) fn closed(&self) -> Option<Cause> {
        self.poll_with(|_, closed| closed)
    }

    pub(crate) async fn receive(&self) -> Result<Datagram> {
        let attempt = self.transfer_attempt();
        let received = self.wait(&attempt, Interest::ReceiveReady, Self::take_datagram);
        let received = received.await.and_then(|received| received);
        received.map_err(|cause| self.fail(&attempt, Stage::Receive, cause))
    }

    pub(crate) fn try_receive(&self) -> Result<Option<Datagram>> {
        let received = self.take_datagram().transpose();
        received.map_err(|cause| self.fail(&self.attempt(Deadline::Never), Stage::Receive, cause))
    }

    /// The next datagram; then a group that was lost; then why there are no more.
    pub(crate) fn take_datagram(&self) -> Option<Result<Datagram, Cause>> {
        let (arrival, closed) = self.poll_with(|state, closed| (state.take_arrival(), closed));
        if let Some(arrival) = arrival {
            let memory = self.queue_pair.returned_memory();
            return Some(Ok(Datagram::new(arrival, &self.local, memory)));
        }
        let lost = self.groups.take_lost(self.queue_pair.queue_pair());
        lost.or(closed).map(Err)
    }

    pub(crate) async fn flush(&self) -> Result<()> {
        let attempt = self.transfer_attempt();
        let last = self.queue_pair.state().last_posted();
        let flushed = self.wait(&attempt, Interest::Flushed(last), |socket| {
            socket.poll_with(|state, closed| match closed {
                Some(cause) => Some(Err(cause)),
                None => state.is_flushed(last).then_some(Ok(())),
            })
        });
        let flushed = flushed.await.and_then(|flushed| flushed);
        flushed.map_err(|cause| self.fail(&attempt, Stage::Send, cause))
    }
}

fn length(slices: &[IoSlice<'_>]) -> usize {
    slices.iter().map(|slice| slice.len()).sum()
}

pub(crate) fn check_length(bytes: usize, max: usize) -> Result<(), Cause> {
    if bytes > max {
        return Err(Cause::DatagramTooLong { bytes, max });
    }
    Ok(())
}
