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
    /// Sends a connect request to the peer or, on an unreliable datagram id, a request
    /// for its service (SIDR). The route must be resolved.
    ///
    /// On InfiniBand and RoCE the peer's answer is a [`ConnectResponse`] event. The
    /// caller then moves the queue pair to RTR and RTS and completes the handshake with
    /// [`establish`](Self::establish). On iWARP, and for datagram services, the answer is
    /// an [`Established`] event. [`Rejected`], [`Unreachable`], on iWARP [`ConnectError`], and
    /// [`AddrError`] if a datagram service has no queue key or another one than the id, are failures,
    /// after which the id cannot connect again. If an
    /// InfiniBand or RoCE peer does not answer, the kernel gives up after more than a
    /// minute (on RoCE 74 to 80 s, on Linux 6.1 98 s or more), for a service after 65 s or
    /// more. Destroying the id ends the attempt at once.
    ///
    /// On iWARP this call connects TCP, which takes minutes if the peer does not answer, and
    /// requires the number of an existing queue pair of the id's device. Meanwhile, commands of the
    /// id that answer the peer fail, and all others block, such as queries,
    /// [`disconnect`](Self::disconnect) and [`migrate`](crate::CmId::migrate). Dropping the id does
    /// not block.
    /// Source: `rdma_connect(3)`, the kernel's `cma.c`, `cm.c` and `iwcm.c`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`], [`Error::InvalidInput`] for values out of
    /// range or beyond the limits of the queue pair's device, and for private data that does not begin
    /// with a zero between InfiniBand addresses; after both the id may try
    /// again. [`Error::InvalidInput`] also while another thread connects with the id, or answers.
    /// [`Error::Command`]: `EINVAL` if the route is not resolved or the id has tried already, and
    /// on iWARP if the device does not have the queue pair. `ENOENT` if the port's table lacks the
    /// partition key of the path. On iWARP also TCP's errors, such as
    /// `ECONNREFUSED` and `ETIMEDOUT`, and `EINTR` if a signal handler interrupted TCP's handshake,
    /// after which the id may try again. siw connects TCP from the id's own port: `EADDRINUSE`,
    /// and in rare cases `EADDRNOTAVAIL`, if TCP already uses it; use a new id with another port.
    ///
    /// [`AddrError`]: crate::EventKind::AddrError
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
        let begins_with_zero = param.data().first().is_none_or(|&first| first == 0);
        // `cma_format_hdr` writes its version there, also where no IP addresses follow it.
        if !begins_with_zero && id.may_be_native() && self.is_native()? {
            let reason =
                "the kernel overwrites the first byte of a request between InfiniBand addresses";
            return Err(Error::invalid(operation, reason));
        }
        let request = Connect::new(id.kernel_id(), wire, param.options());
        let send = || id.send(|| operation, request, &mut NoResponse, Attachment::None);
        // An id that was connected already: the kernel refuses that.
        if id.answering().is_unanswered() {
            return send();
        }
        id.send_message(|| operation, true, send)
    }

    /// Accepts the connect request that created this id. An [`Established`] event
    /// follows when the peer has completed the handshake; datagram ids report no event.
    /// On InfiniBand and RoCE, if the peer disconnects at once, [`Disconnected`] without
    /// a failure may be the only event: the connection was established then too.
    ///
    /// The queue pair must be in RTS before, because the peer's data may arrive before
    /// the event. iWARP requires the number of an existing queue pair of the id's
    /// device, and the kernel moves that to RTS.
    /// Source: `rdma_accept(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] and [`Error::InvalidInput`] change nothing; the
    /// latter also if the request was accepted already and the event that follows has
    /// not been read, or while another thread accepts or rejects it. Any [`Error::Command`]
    /// other than `EACCES` has rejected the request: `EINVAL` for an id without a request, for
    /// one that was accepted already, or if the peer is gone (`ECONNRESET` on iWARP).
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
        // Nothing follows for datagrams.
        let is_answered = self.qp_type() != QpType::UD;
        let send = || id.send(|| operation, request, &mut NoResponse, Attachment::None);
        id.send_message(|| operation, is_answered, send)
    }

    /// Completes the handshake on the connecting side after a
    /// [`ConnectResponse`](crate::EventKind::ConnectResponse) event, once the
    /// queue pair is in RTS. No event follows on this side. For InfiniBand and RoCE;
    /// iWARP does not need it.
    /// Source: `rdma_establish(3)`, IBTA Vol 1 §12.9.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for the id of a connect request (call [`accept`](Self::accept)), as
    /// long as the peer's response has not been read, and while another thread answers it;
    /// [`Error::Command`]: `EINVAL` if there is no response to answer, as on iWARP.
    #[doc(alias = "rdma_establish")]
    pub fn establish(&self) -> Result<()> {
        let operation = || Operation::Establish;
        let id = self.enter_to_establish()?;
        let request = Accept::ready_to_use(id.kernel_id());
        let send = || id.send(operation, request, &mut NoResponse, Attachment::None);
        id.send_message(operation, false, send)
    }

    /// Rejects the connect request that created this id or, on the connecting side, the
    /// peer's response. The peer receives a [`Rejected`](crate::EventKind::Rejected)
    /// event with the private data, a datagram peer an
    /// [`Unreachable`](crate::EventKind::Unreachable) event.
    /// Source: `rdma_reject(3)`.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`]; [`Error::InvalidInput`] while the id waits for the
    /// peer's answer, or another thread accepts or rejects; [`Error::Command`]: `EINVAL` if there
    /// is nothing to reject.
    #[doc(alias = "rdma_reject")]
    pub fn reject(&self, private_data: &[u8]) -> Result<()> {
        // The kernel replaces 0 by "consumer defined".
        self.reject_because(RejectReason::new(0), private_data)
    }

    /// Rejects because this side does not support the peer's options of enhanced
    /// connection establishment. Linux before 5.8 sends "consumer defined" instead;
    /// iWARP transmits no reason. Source: `rdma_reject_ece(3)`.
    ///
    /// # Errors
    /// Those of [`reject`](Self::reject).
    #[doc(alias = "rdma_reject_ece")]
    pub fn reject_ece(&self, private_data: &[u8]) -> Result<()> {
        self.reject_because(RejectReason::VENDOR_OPTION_NOT_SUPPORTED, private_data)
    }

    fn reject_because(&self, reason: RejectReason, private_data: &[u8]) -> Result<()> {
        let operation = || Operation::Reject;
        self.check_private_data(CmMessage::Reject, private_data)?;
        let id = self.enter()?;
        let request = Reject::new(id.kernel_id(), reason, private_data)
            .map_err(|_| Error::private_data(private_data.len(), usize::from(u8::MAX)))?;
        let send = || id.send(operation, request, &mut NoResponse, Attachment::None);
        id.send_message(operation, false, send)
    }

    /// Disconnects, or answers a peer that has disconnected. A
    /// [`Disconnected`](crate::EventKind::Disconnected) event follows, on InfiniBand and
    /// RoCE after the peer's answer, or with `ETIMEDOUT` if the peer does not answer for
    /// long. The queue pair must be in the error state before (on iWARP: SQD), so that
    /// it sends nothing that the peer does not receive. A second call has no effect, nor
    /// has one on a datagram id, nor, on InfiniBand and RoCE, one before the connection is
    /// established: no event follows, so reject the request or drop the id instead. On iWARP
    /// this blocks for up to 10 s during the MPA handshake.
    /// Source: `rdma_disconnect(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EINVAL` for an id that has not begun to connect.
    #[doc(alias = "rdma_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        let id = self.enter()?;
        let request = Disconnect::new(id.kernel_id());
        let operation = Operation::Disconnect;
        id.send(|| operation, request, &mut NoResponse, Attachment::None)
    }

    /// Notifies the connection manager of an event of the queue pair. iWARP ignores it.
    /// Source: `rdma_notify(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Command`]: `EISCONN` if the connection is established already,
    /// `EINVAL` if the handshake has not come that far.
    #[doc(alias = "rdma_notify")]
    pub fn notify(&self, what: Notification) -> Result<()> {
        let event = match what {
            Notification::CommunicationEstablished => Notify::COMM_EST,
            Notification::PathMigrated => Notify::PATH_MIG,
        };
        let id = self.enter()?;
        let request = Notify::new(id.kernel_id(), event);
        let operation = Operation::Notify(what);
        id.send(|| operation, request, &mut NoResponse, Attachment::None)
    }

    /// Fails on the id of a connect request: the kernel would accept a datagram peer's request
    /// without a queue pair, and reject any other.
    pub(crate) fn enter_to_establish(&self) -> Result<InFlight> {
        let id = self.enter()?;
        if id.is_child() {
            let reason = "only the connecting side establishes: accept the request";
            return Err(Error::invalid(Operation::Establish, reason));
        }
        Ok(id)
    }

    /// Fails early while a message of this id is unanswered or in flight.
    fn enter_after_answer(&self, operation: Operation) -> Result<InFlight> {
        let id = self.enter()?;
        match id.answering().refusal() {
            Some(reason) => Err(Error::invalid(operation, reason)),
            None => Ok(id),
        }
    }

    /// The depths that accepting with `param` would send; fails if accepting would.
    pub(crate) fn agreed_depths(&self, param: &ConnParam) -> Result<DepthLimits> {
        let id = self.enter_after_answer(Operation::Accept)?;
        let wire = param.for_accept(Operation::Accept, id.requested_depths())?;
        self.check_private_data(CmMessage::Accept, param.data())?;
        Ok((&wire).into())
    }

    fn check_private_data(&self, message: CmMessage, data: &[u8]) -> Result<()> {
        message.check(self.qp_type(), data, || self.message_format(message))
    }

    /// Whether its source is an InfiniBand address.
    fn is_native(&self) -> Result<bool> {
        let source = self.local_addr()?;
        Ok(source.is_some_and(|source| source.family() == Family::Ib))
    }

    fn message_format(&self, message: CmMessage) -> Result<MessageFormat> {
        if message == CmMessage::Request && self.is_native()? {
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
    /// Runs a command that sends the peer a message, which the peer answers or not.
    fn send_message(
        &self,
        operation: impl FnOnce() -> Operation,
        is_answered: bool,
        command: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let begun = self.answering().begin(is_answered);
        let sending = begun.map_err(|reason| Error::invalid(operation(), reason))?;
        self.invalidating(command)?;
        sending.sent();
        Ok(())
    }
}
