//! Connecting, accepting, rejecting and disconnecting.

use rdmacm_abi::{Accept, Connect, Disconnect, NoResponse, Notify, QpType, Reject, RejectReason};

use super::IdHandle;
use crate::address::Family;
use crate::conn_param::{CmMessage, ConnParam, MessageFormat};
use crate::error::{Error, Result};
use crate::id_state::InFlight;
use crate::notification::Notification;
use crate::operation::Operation;
use crate::queue_pair::DepthLimits;
use crate::rdma_devices::Transport;
use crate::ucma::Attachment;

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
        self.check_private_data(CmMessage::Request, param.data())?;
        let id = self.enter()?;
        let request = Connect::new(id.kernel_id(), wire, param.options());
        id.expecting_answer(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
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
        let id = self.enter_after_answer(operation)?;
        let wire = param.for_accept(operation, id.requested_depths())?;
        self.check_private_data(CmMessage::Accept, param.data())?;
        let request = Accept::new(id.token().uid(), id.kernel_id(), wire, param.options());
        let send = || id.send(operation, &request, &mut NoResponse, Attachment::None);
        if self.qp_type() == QpType::UD {
            // Nothing follows.
            return id.invalidating(send);
        }
        id.expecting_answer(send)
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
        let id = self.enter_after_answer(operation)?;
        let request = Accept::ready_to_use(id.kernel_id());
        id.invalidating(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
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
        self.check_private_data(CmMessage::Reject, private_data)?;
        let id = self.enter_after_answer(operation)?;
        let request = Reject::new(id.kernel_id(), reason, private_data)
            .map_err(|_| Error::private_data(private_data.len(), usize::from(u8::MAX)))?;
        id.invalidating(|| id.send(operation, &request, &mut NoResponse, Attachment::None))
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
    fn enter_after_answer(&self, operation: Operation) -> Result<InFlight> {
        let id = self.enter()?;
        if id.awaits_answer() {
            let reason = "the peer's answer has not been read yet";
            return Err(Error::invalid(operation, reason));
        }
        Ok(id)
    }

    /// The depths that accepting with `param` agrees to; refuses what accepting
    /// would refuse.
    pub(crate) fn agreed_depths(&self, param: &ConnParam) -> Result<DepthLimits> {
        let id = self.enter_after_answer(Operation::Accept)?;
        let wire = param.for_accept(Operation::Accept, id.requested_depths())?;
        self.check_private_data(CmMessage::Accept, param.data())?;
        Ok((&wire).into())
    }

    fn check_private_data(&self, message: CmMessage, data: &[u8]) -> Result<()> {
        message.check(self.qp_type(), data, || self.message_format(message))
    }

    fn message_format(&self, message: CmMessage) -> Result<MessageFormat> {
        let source = self.local_addr()?;
        let is_native = source.is_some_and(|source| source.family() == Family::Ib);
        if is_native && message == CmMessage::Request {
            return Ok(MessageFormat::IbByGid);
        }
        let device = self.rdma_device()?;
        Ok(match device.map(|device| device.transport) {
            Some(Transport::IWarp) if self.qp_type() != QpType::UD => MessageFormat::IWarp,
            // The smaller limit if the transport is unknown: an ACCEPT with too much
            // data would reject the peer.
            _ => MessageFormat::IbByIp,
        })
    }
}

impl InFlight {
    /// Runs a command that sends the peer a message which it answers.
    fn expecting_answer(&self, command: impl FnOnce() -> Result<()>) -> Result<()> {
        self.expect_answer();
        let sent = self.invalidating(command);
        if sent.is_err() {
            self.expect_no_answer();
        }
        sent
    }
}
