//! Connecting, accepting, refusing and parting.

use rdmacm_abi::{Accept, Connect, Disconnect, NoResponse, Notify, QpType, Reject, RejectReason};

use super::{IdHandle, InFlight};
use crate::address::Family;
use crate::conn_param::{CmMessage, ConnParam, Place};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::queue_pair::DepthLimits;
use crate::rdma_devices::Transport;
use crate::ucma::Attachment;

/// What a queue pair reports that the connection manager may have missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notification {
    /// Data arrived on a connection that is not established yet: the peer's
    /// last message of the handshake was lost.
    #[doc(alias = "IBV_EVENT_COMM_EST")]
    CommunicationEstablished,
    /// The connection migrated to its alternate path. Only for one that has
    /// such a path: on RoCE the kernel takes the other path, which is none, for
    /// the way to the peer, and its messages go nowhere.
    #[doc(alias = "IBV_EVENT_PATH_MIG")]
    PathMigrated,
}

impl IdHandle {
    /// Asks the peer for a connection, or on an unreliable datagram id for its
    /// service. The route must be resolved.
    ///
    /// On InfiniBand and RoCE a [`ConnectResponse`] event brings the peer's
    /// answer, whereupon the queue pair goes to RTR and RTS and
    /// [`establish`](Self::establish) completes the handshake; on iWARP and for
    /// datagram services an [`Established`] event does. [`Rejected`],
    /// [`Unreachable`] and, on iWARP, [`ConnectError`] say no, after which the
    /// id connects no more. An InfiniBand or RoCE peer that does not answer is
    /// given up after more than a minute (79.9 s on Linux 7.2), a service after
    /// about 65 s; destroying the id ends it at once.
    ///
    /// iWARP connects TCP before this returns, which takes minutes where nobody
    /// answers, and needs the number of a real queue pair of the id's device.
    /// Source: `rdma_connect(3)`, the kernel's `cma.c`, `cm.c` and `iwcm.c`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`], [`Error::InvalidInput`] for values out of
    /// range or beyond the queue pair's device; after both the id may try again.
    /// [`Error::Command`]: `EINVAL` for an id whose route is not resolved or
    /// that has tried already, and on iWARP for a queue pair it does not have;
    /// there also `ECONNREFUSED`, `ETIMEDOUT` and what else TCP says, and `EINTR` where
    /// a signal's handler has interrupted TCP's handshake, after which the id may
    /// try again.
    ///
    /// [`ConnectResponse`]: crate::EventKind::ConnectResponse
    /// [`Established`]: crate::EventKind::Established
    /// [`Rejected`]: crate::EventKind::Rejected
    /// [`Unreachable`]: crate::EventKind::Unreachable
    /// [`ConnectError`]: crate::EventKind::ConnectError
    #[doc(alias = "rdma_connect")]
    pub fn connect(&self, param: impl Into<ConnParam>) -> Result<()> {
        let param = param.into();
        let operation = Operation::Connect;
        let wire = param.for_connect(operation)?;
        self.check_room(CmMessage::Request, param.data())?;
        let id = self.enter()?;
        let request = Connect::new(id.kernel_id(), wire, param.options());
        id.asking(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
    }

    /// Accepts the connect request that brought this id. From now on the id
    /// reports events of its own; [`Established`] says that the peer is there
    /// (datagram ids report nothing). A peer that parts at once may be heard only to
    /// part on InfiniBand and RoCE: [`Disconnected`] without a failure says as well that
    /// it was there.
    ///
    /// The queue pair is to be in RTS before, because the peer's data may come
    /// before that event. iWARP needs the number of a real queue pair of the
    /// id's device, and moves it itself.
    /// Source: `rdma_accept(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] and [`Error::InvalidInput`], this also where the
    /// request has been accepted and what the peer says to that was not read yet, leave
    /// all as it was. Any [`Error::Command`] has rejected the request: `EINVAL` for
    /// an id that brought no request, that has accepted, or whose peer has gone;
    /// `ECONNRESET` for the last on iWARP.
    ///
    /// [`Disconnected`]: crate::EventKind::Disconnected
    /// [`Established`]: crate::EventKind::Established
    #[doc(alias = "rdma_accept")]
    pub fn accept(&self, param: impl Into<ConnParam>) -> Result<()> {
        let param = param.into();
        let operation = Operation::Accept;
        let id = self.enter_answered(operation)?;
        let wire = param.for_accept(operation, id.asked())?;
        self.check_room(CmMessage::Accept, param.data())?;
        let request = Accept::new(id.token().uid(), id.kernel_id(), wire, param.options());
        let send = || id.send(operation, &request, &mut NoResponse, Attachment::None);
        if self.qp_type() == QpType::UD {
            // Nothing follows.
            return id.moving_on(send);
        }
        id.asking(send)
    }

    /// Completes the handshake on the connecting side after a
    /// [`ConnectResponse`](crate::EventKind::ConnectResponse) event, once the
    /// queue pair is in RTS. No event follows on this side. InfiniBand and RoCE
    /// only: iWARP needs it not.
    /// Source: `rdma_establish(3)`, IBTA Vol 1 §12.9.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where the peer's response has not been read yet,
    /// [`Error::Command`]: `EINVAL` where no response awaits it, as on iWARP.
    #[doc(alias = "rdma_establish")]
    pub fn establish(&self) -> Result<()> {
        let operation = Operation::Establish;
        let id = self.enter_answered(operation)?;
        let request = Accept::ready_to_use(id.kernel_id());
        id.moving_on(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
    }

    /// Refuses the connect request that brought this id, or on the connecting
    /// side the peer's response. The peer gets a
    /// [`Rejected`](crate::EventKind::Rejected) event with the private data; a
    /// datagram peer [`Unreachable`](crate::EventKind::Unreachable).
    /// Source: `rdma_reject(3)`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`]; [`Error::InvalidInput`] while it is the peer's
    /// turn to answer; [`Error::Command`]: `EINVAL` where there is nothing to refuse, or
    /// no more.
    #[doc(alias = "rdma_reject")]
    pub fn reject(&self, private_data: &[u8]) -> Result<()> {
        // The kernel makes it "consumer defined".
        self.reject_because(RejectReason::new(0), private_data)
    }

    /// Refuses because the peer's options of enhanced connection establishment
    /// will not do. Linux before 5.8 says "consumer defined" instead; iWARP
    /// transmits no reason. Source: `rdma_reject_ece(3)`.
    ///
    /// # Errors
    /// Those of [`reject`](Self::reject).
    #[doc(alias = "rdma_reject_ece")]
    pub fn reject_ece(&self, private_data: &[u8]) -> Result<()> {
        self.reject_because(RejectReason::VENDOR_OPTION_NOT_SUPPORTED, private_data)
    }

    fn reject_because(&self, reason: RejectReason, private_data: &[u8]) -> Result<()> {
        let operation = Operation::Reject;
        self.check_room(CmMessage::Reject, private_data)?;
        let id = self.enter_answered(operation)?;
        let request = Reject::new(id.kernel_id(), reason, private_data)
            .map_err(|_| Error::private_data(private_data.len(), usize::from(u8::MAX)))?;
        id.moving_on(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
    }

    /// Ends the connection, or answers the peer that ends it. A
    /// [`Disconnected`](crate::EventKind::Disconnected) event follows; on
    /// InfiniBand and RoCE only when the peer has answered, or with `ETIMEDOUT`
    /// when it has not for long. The queue pair is to be in the error state
    /// before (on iWARP: SQD), so that nothing is sent that nobody receives.
    /// Repeating it does nothing, nor does it on a datagram id. On iWARP it
    /// takes up to 10 s while the MPA handshake is under way.
    /// Source: `rdma_disconnect(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for an id that has not begun to connect.
    #[doc(alias = "rdma_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        let id = self.enter()?;
        let request = Disconnect::new(id.kernel_id());
        let operation = Operation::Disconnect;
        id.send(operation, &request, &mut NoResponse, Attachment::None)
    }

    /// Tells the connection manager what the queue pair reported. iWARP
    /// overlooks it. Source: `rdma_notify(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EISCONN` for a connection that is established
    /// already, `EINVAL` for one that is not that far.
    #[doc(alias = "rdma_notify")]
    pub fn notify(&self, what: Notification) -> Result<()> {
        let event = match what {
            Notification::CommunicationEstablished => Notify::COMM_EST,
            Notification::PathMigrated => Notify::PATH_MIG,
        };
        let id = self.enter()?;
        let request = Notify::new(id.kernel_id(), event);
        let operation = Operation::Notify(what);
        id.send(operation, &request, &mut NoResponse, Attachment::None)
    }

    /// Enters with a command that answers the peer, unless this id is the one to
    /// be answered: the kernel takes any of them for a refusal and forgets what it
    /// waits for. Destroying the id then takes more than a minute on RoCE, and on
    /// iWARP brings the kernel down (a `BUG` of `iwcm.c`, Linux 7.3).
    fn enter_answered(&self, operation: Operation) -> Result<InFlight> {
        let id = self.enter()?;
        if id.is_waiting() {
            let reason = "the peer's answer has not been read yet";
            return Err(Error::invalid(operation, reason));
        }
        Ok(id)
    }

    /// The depths that accepting with `param` agrees to; refuses what accepting
    /// would refuse.
    pub(super) fn agreed(&self, param: &ConnParam) -> Result<DepthLimits> {
        let id = self.enter_answered(Operation::Accept)?;
        let wire = param.for_accept(Operation::Accept, id.asked())?;
        self.check_room(CmMessage::Accept, param.data())?;
        Ok((&wire).into())
    }

    fn check_room(&self, message: CmMessage, data: &[u8]) -> Result<()> {
        message.check(self.qp_type(), data, || self.place(message))
    }

    /// Where the id is, as far as the room for private data goes.
    fn place(&self, message: CmMessage) -> Result<Place> {
        let source = self.local_addr()?;
        let by_gid = source.is_some_and(|source| source.family() == Family::Ib);
        if by_gid && message == CmMessage::Request {
            return Ok(Place::IbByGid);
        }
        let device = self.rdma_device()?;
        Ok(match device.map(|device| device.transport) {
            Some(Transport::IWarp) if self.qp_type() != QpType::UD => Place::IWarp,
            // The smaller room where nobody can tell: an ACCEPT with too much
            // data would reject the peer.
            _ => Place::IbByIp,
        })
    }
}

impl InFlight {
    /// Carries out a command after which it is the peer's turn to answer.
    fn asking(&self, command: impl FnOnce() -> Result<()>) -> Result<()> {
        self.asks();
        let asked = self.moving_on(command);
        if asked.is_err() {
            self.did_not_ask();
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::EventChannel;
    use crate::ucma::testing::AcceptAll;
    use rdmacm_abi::PortSpace;
    use std::sync::Arc;

    /// Each message has a room of its own, see [`CmMessage`].
    #[test]
    fn every_command_checks_its_own_room() {
        let options = EventChannel::options().ucma(Arc::new(AcceptAll::new()));
        let channel = options.open().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let data = [7; 251];
        let param = |length| ConnParam::new().private_data(&data[..length]).unwrap();
        let too_long = |limit: usize| Err(Error::private_data(limit + 1, limit));
        assert_eq!(id.reject(&data[..149]), too_long(148));
        assert_eq!(id.reject_ece(&data[..149]), too_long(148));
        assert_eq!(id.accept(param(197)), too_long(196));
        assert_eq!(id.connect(param(57)), too_long(56));
        assert_eq!(id.reject(&data[..148]), Ok(()));
        assert_eq!(id.accept(param(196)), Ok(()));
        assert_eq!(id.connect(param(56)), Ok(()));
    }
}
