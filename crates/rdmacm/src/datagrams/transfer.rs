//! Sending and receiving, one step each.

use rdmacm_core::Deadline;
use rdmacm_verbs::SendOperation;

use super::address::DatagramAddr;
use super::datagram::Datagram;
use super::open::Open;
use super::wait::{Arrivals, Quiet, Room};
use crate::error::{Cause, Result, Target};
use crate::hub::Place;
use crate::messages::Destination;
use crate::step::Step;
use crate::steps::Attempt;

impl Open {
    /// A step of the socket's, from now.
    pub(super) fn attempt(&self, deadline: Deadline) -> Attempt {
        let hub = self.tracked.hub();
        Attempt::new(hub, deadline.until(hub.now()), Target::default())
    }

    /// A step that carries something, by the deadline for those.
    fn carrying(&self) -> Attempt {
        self.attempt(self.traffic.deadline())
    }

    pub(super) async fn send(
        &self,
        operation: SendOperation,
        bytes: &[u8],
        to: &DatagramAddr,
    ) -> Result<()> {
        let attempt = self.carrying();
        let sent = self.try_send(&attempt, operation, bytes, to).await;
        sent.map_err(|cause| self.fail(&attempt, Step::Send, cause))
    }

    async fn try_send(
        &self,
        attempt: &Attempt,
        operation: SendOperation,
        bytes: &[u8],
        to: &DatagramAddr,
    ) -> Result<(), Cause> {
        Self::check(bytes, self.longest)?;
        let domain = self.traffic.protection_domain();
        let address = self.handles.get(attempt, domain, to.ah_attr).await?;
        // The port's MTU may have become smaller since the socket was made.
        let longest = usize::try_from(address.max_message()).unwrap_or(usize::MAX);
        Self::check(bytes, longest)?;
        let to = Destination {
            address,
            qp_number: to.qp_number,
            qkey: to.qkey,
        };
        let room = Room {
            open: self,
            operation,
            bytes,
            to,
        };
        self.wait(attempt, room).await?
    }

    fn check(bytes: &[u8], max: usize) -> Result<(), Cause> {
        if bytes.len() > max {
            return Err(Cause::DatagramTooLong {
                bytes: bytes.len(),
                max,
            });
        }
        Ok(())
    }

    pub(super) async fn receive(&self) -> Result<Datagram> {
        let attempt = self.carrying();
        let received = self.wait(&attempt, Arrivals(self)).await;
        received
            .and_then(|received| received)
            .map_err(|cause| self.fail(&attempt, Step::Receive, cause))
    }

    pub(super) fn try_receive(&self) -> Result<Option<Datagram>> {
        let received = Arrivals(self).take().transpose();
        received.map_err(|cause| self.fail(&self.carrying(), Step::Receive, cause))
    }

    pub(super) async fn flush(&self) -> Result<()> {
        let attempt = self.carrying();
        let sent = self.wait(&attempt, Quiet(self)).await;
        sent.and_then(|sent| sent)
            .map_err(|cause| self.fail(&attempt, Step::Send, cause))
    }
}
