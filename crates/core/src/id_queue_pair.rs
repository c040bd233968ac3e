//! Ids with their queue pairs.

use rdmacm_abi::{AhAttr, Ece, QpAttr, QpAttrMask, QpState, QpType};
use zerocopy::FromZeros;

use crate::conn_param::ConnParam;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::gid::Gid;
use crate::id_handle::IdHandle;
use crate::operation::Operation;
use crate::queue_pair::QueuePair;
use crate::rdma_devices::Transport;

/// How a connect request moves a queue pair to RTS, see [`IdHandle::request_attrs`].
#[derive(Clone, Debug)]
pub struct RequestAttrs {
    init: QpAttr,
    rtr: QpAttr,
    rts: QpAttr,
}

impl RequestAttrs {
    /// The GID of the peer's port, as the peer says. On RoCE the kernel sends to the neighbour
    /// with this address: moving the queue pair to RTR asks for it, and sleeps for up to a second
    /// if it does not answer (`ib_resolve_eth_dmac`). iWARP has none: zeros.
    #[must_use]
    #[doc(alias = "dgid")]
    pub fn peer_gid(&self) -> Gid {
        Gid(self.rtr.ah_attr.grh.destination_gid)
    }

    /// The number of the port that the device sends from, and the index of the source GID in its
    /// table.
    #[must_use]
    #[doc(alias = "sgid_index")]
    pub fn source(&self) -> (u8, u8) {
        let AhAttr {
            port_number, grh, ..
        } = &self.rtr.ah_attr;
        (*port_number, grh.source_gid_index)
    }
}

/// An id with its queue pair, whose state follows the connection's, see
/// [`IdHandle::with_queue_pair`].
#[derive(Clone, Copy, Debug)]
pub struct WithQueuePair<'a> {
    id: &'a IdHandle,
    queue_pair: &'a dyn QueuePair,
}

impl IdHandle {
    /// Queries how the connect request that created the id moves a queue pair to RTS, for
    /// [`WithQueuePair::accept_by`].
    ///
    /// # Errors
    /// Those of [`init_qp_attr`](Self::init_qp_attr).
    #[doc(alias = "rdma_init_qp_attr")]
    pub fn request_attrs(&self) -> Result<RequestAttrs> {
        Ok(RequestAttrs {
            init: self.init_qp_attr(QpState::INIT)?,
            rtr: self.init_qp_attr(QpState::RTR)?,
            rts: self.init_qp_attr(QpState::RTS)?,
        })
    }

    /// Commands that also change the state of this id's queue pair.
    ///
    /// The connecting side calls [`init`](WithQueuePair::init), posts receives,
    /// [`connect`](WithQueuePair::connect), and
    /// [`establish`](WithQueuePair::establish) with the event
    /// [`ConnectResponse`](crate::EventKind::ConnectResponse), which iWARP does not
    /// have. The accepting side calls `init` on the id of a connect request, posts
    /// receives, and calls [`accept`](WithQueuePair::accept). Both sides call
    /// [`disconnect`](WithQueuePair::disconnect).
    ///
    /// A datagram queue pair, which has no peer, only needs
    /// [`ready_to_send`](WithQueuePair::ready_to_send).
    #[must_use]
    pub fn with_queue_pair<'a>(&'a self, queue_pair: &'a dyn QueuePair) -> WithQueuePair<'a> {
        WithQueuePair {
            id: self,
            queue_pair,
        }
    }
}

impl WithQueuePair<'_> {
    /// Moves the queue pair to INIT, so that receives may be posted. The id must be bound
    /// to a device.
    ///
    /// # Errors
    /// Those of [`IdHandle::init_qp_attr`]; [`Error::QueuePair`].
    pub fn init(&self) -> Result<()> {
        match self.known_init_attr()? {
            Some(attr) => self.modify(QpState::INIT, &attr, attr.mask),
            None => self.advance(QpState::INIT, |_| {}),
        }
    }

    /// Moves a datagram queue pair to INIT, RTR and RTS, with the partition key, port
    /// and queue key ([`RDMA_UDP_QKEY`](crate::RDMA_UDP_QKEY) in
    /// [`PortSpace::UDP`](crate::PortSpace::UDP)) of its id,
    /// which must be bound to a device. Afterwards it can send and receive.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an id of another type; those of
    /// [`IdHandle::init_qp_attr`]; [`Error::QueuePair`].
    #[doc(alias = "rdma_create_qp", alias = "ucma_init_ud_qp")]
    pub fn ready_to_send(&self) -> Result<()> {
        if self.id.qp_type() != QpType::UD {
            let operation = Operation::InitQpAttr(QpState::RTS);
            let reason = "only a datagram queue pair goes there without a peer";
            return Err(Error::invalid(operation, reason));
        }
        self.advance(QpState::INIT, |_| {})?;
        self.move_to(QpState::RTR)?;
        // Packet numbers of datagrams are not checked, so they begin at 0.
        self.move_with(QpState::RTS, QpAttrMask::SQ_PSN)
    }

    /// Calls [`IdHandle::connect`] with the queue pair's number, limits and options.
    ///
    /// # Errors
    /// Those of [`IdHandle::connect`]; [`Error::QueuePair`].
    #[doc(alias = "rdma_connect")]
    pub fn connect(&self, param: impl Into<ConnParam>) -> Result<()> {
        self.id.connect(self.connect_param(param)?)
    }

    /// The parameters with which [`connect`](Self::connect) calls [`IdHandle::connect`].
    /// On iWARP that call blocks while TCP connects; with the parameters, another thread
    /// can make it without a reference to the queue pair.
    ///
    /// # Errors
    /// [`Error::QueuePair`].
    pub fn connect_param(&self, param: impl Into<ConnParam>) -> Result<ConnParam> {
        let param = param.into().with_queue_pair(self.queue_pair);
        let ece = self.own_ece()?.unwrap_or(param.options());
        Ok(param.ece(ece))
    }

    /// Completes the handshake after a peer's response: moves the queue pair to RTR and
    /// RTS and calls [`IdHandle::establish`]. A failure rejects the peer and moves the
    /// queue pair to ERR, unless another thread answers the peer at the same time, or the id is
    /// that of a connect request, on which this fails and changes nothing.
    ///
    /// # Errors
    /// Those of [`IdHandle::init_qp_attr`] and [`IdHandle::establish`];
    /// [`Error::QueuePair`].
    #[doc(alias = "rdma_establish")]
    pub fn establish(&self, response: &Event) -> Result<()> {
        let established = self
            .id
            .enter_to_establish()
            .and_then(|_id| self.agree(response.ece()))
            .and_then(|()| self.advance_to_rts())
            .and_then(|()| self.id.establish());
        self.or_reject(established)
    }

    /// Accepts the connect request that created the id. Moves the queue pair to RTR and
    /// RTS before, because the peer's data may arrive at once. A failure rejects the peer
    /// and moves the queue pair to ERR; but a call that [`IdHandle::accept`] refuses
    /// before it reaches the kernel changes nothing.
    ///
    /// A queue pair with options of enhanced connection establishment gets those of the
    /// request if they are of its vendor, otherwise none. The reply carries the options in
    /// use.
    ///
    /// On RoCE it may block for a second, see [`RequestAttrs::peer_gid`].
    ///
    /// # Errors
    /// Those of [`IdHandle::accept`] and [`IdHandle::request_attrs`];
    /// [`Error::QueuePair`].
    #[doc(alias = "rdma_accept")]
    pub fn accept(&self, param: impl Into<ConnParam>) -> Result<()> {
        self.accept_with(param.into(), || self.id.request_attrs())
    }

    /// As [`accept`](Self::accept), with the attributes that were queried before.
    ///
    /// # Errors
    /// Those of [`IdHandle::accept`]; [`Error::QueuePair`].
    #[doc(alias = "rdma_accept")]
    pub fn accept_by(&self, attrs: RequestAttrs, param: impl Into<ConnParam>) -> Result<()> {
        self.accept_with(param.into(), || Ok(attrs))
    }

    fn accept_with(
        &self,
        param: ConnParam,
        attrs: impl FnOnce() -> Result<RequestAttrs>,
    ) -> Result<()> {
        let param = param.with_queue_pair(self.queue_pair);
        let agreed = self.id.agreed_depths(&param)?;
        // The kernel's attributes are those of the request.
        let lower = |attr: &mut QpAttr| {
            attr.max_destination_rd_atomic = agreed.responder_resources;
            attr.max_rd_atomic = agreed.initiator_depth;
        };
        let asked = self.id.enter()?.requested_ece();
        let accepted = self
            .agree_to_request(asked)
            .and_then(|()| attrs())
            .and_then(|attrs| self.advance_by_request(&attrs, lower))
            .and_then(|()| self.ece_in_use(asked))
            .and_then(|ece| {
                self.id
                    .accept(param.clone().ece(ece.unwrap_or(param.options())))
            });
        self.or_reject(accepted)
    }

    /// Moves the queue pair to ERR (on iWARP: SQD), which flushes posted requests, and
    /// calls [`IdHandle::disconnect`].
    ///
    /// # Errors
    /// [`Error::QueuePair`], after which nothing was sent; those of
    /// [`IdHandle::disconnect`].
    #[doc(alias = "rdma_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        let state = match self.queue_pair.transport() {
            Transport::IWarp => QpState::SQD,
            _ => QpState::ERR,
        };
        self.move_to(state)?;
        self.id.disconnect()
    }

    /// Moves the queue pair to ERR, which flushes posted requests. For a connection that
    /// failed or was lost.
    ///
    /// # Errors
    /// [`Error::QueuePair`].
    pub fn move_to_error(&self) -> Result<()> {
        self.move_to(QpState::ERR)
    }

    /// The kernel's attributes of INIT before the request, if they are known without asking: on
    /// RoCE the partition is the first of the table, and the cached addresses name the port.
    /// [`advance_to_rts`](Self::advance_to_rts) sets what depends on the request.
    fn known_init_attr(&self) -> Result<Option<QpAttr>> {
        if self.queue_pair.transport() != Transport::RoCE || self.id.qp_type() != QpType::RC {
            return Ok(None);
        }
        let id = self.id.enter()?;
        let addresses = id.cache().get(|cache| cache.addresses);
        let addresses = addresses.filter(|found| found.device.is_some() && !id.is_child());
        Ok(addresses.map(|addresses| {
            let mut attr = QpAttr::new_zeroed();
            attr.mask = QpAttrMask::STATE
                | QpAttrMask::PKEY_INDEX
                | QpAttrMask::PORT
                | QpAttrMask::ACCESS_FLAGS;
            attr.qp_state = QpState::INIT;
            attr.port_number = addresses.port_number;
            attr
        }))
    }

    /// From INIT to RTS. The remote access rights and the partition of INIT depend on the
    /// request; the step to RTR may set them as well (`ib_modify_qp_is_ok`).
    fn advance_to_rts(&self) -> Result<()> {
        let init = self.id.init_qp_attr(QpState::INIT)?;
        let late = init.mask & (QpAttrMask::ACCESS_FLAGS | QpAttrMask::PKEY_INDEX);
        self.advance(QpState::RTR, |attr| {
            attr.access_flags = init.access_flags;
            attr.pkey_index = init.pkey_index;
            attr.mask |= late;
        })?;
        self.advance(QpState::RTS, |_| {})
    }

    /// From RESET or INIT to RTS, by the attributes of the request.
    fn advance_by_request(&self, attrs: &RequestAttrs, change: impl Fn(&mut QpAttr)) -> Result<()> {
        for (state, attr) in [
            (QpState::INIT, &attrs.init),
            (QpState::RTR, &attrs.rtr),
            (QpState::RTS, &attrs.rts),
        ] {
            let mut attr = *attr;
            change(&mut attr);
            self.modify(state, &attr, attr.mask)?;
        }
        Ok(())
    }

    fn advance(&self, state: QpState, change: impl Fn(&mut QpAttr)) -> Result<()> {
        let mut attr = self.id.init_qp_attr(state)?;
        change(&mut attr);
        self.modify(state, &attr, attr.mask)
    }

    fn move_to(&self, state: QpState) -> Result<()> {
        self.move_with(state, QpAttrMask::empty())
    }

    /// With zeros for the other attributes of the mask.
    fn move_with(&self, state: QpState, zeros: QpAttrMask) -> Result<()> {
        let mut attr = QpAttr::new_zeroed();
        attr.qp_state = state;
        self.modify(state, &attr, QpAttrMask::STATE | zeros)
    }

    fn modify(&self, state: QpState, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        self.queue_pair
            .modify(attr, mask)
            .map_err(|error| Error::queue_pair(state, error))
    }

    fn own_ece(&self) -> Result<Option<Ece>> {
        self.queue_pair
            .ece()
            .map_err(|error| Error::queue_pair(QpState::INIT, error))
    }

    /// Chooses options by the peer's reply, none of another vendor.
    fn agree(&self, peer: Ece) -> Result<()> {
        let Some(own) = self.own_ece()? else {
            return Ok(());
        };
        let chosen = match peer.vendor_id {
            0 => Ok(Ece { options: 0, ..own }),
            vendor if vendor == own.vendor_id => Ok(peer),
            _ => Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
        };
        chosen
            .and_then(|ece| self.queue_pair.set_ece(ece))
            .map_err(|error| Error::queue_pair(QpState::RTR, error))
    }

    /// Chooses options by the peer's request, none of another vendor.
    fn agree_to_request(&self, asked: Ece) -> Result<()> {
        let Some(own) = self.own_ece()? else {
            return Ok(());
        };
        let options = match asked.vendor_id {
            0 => return Ok(()),
            vendor if vendor == own.vendor_id => asked.options,
            _ => 0,
        };
        self.queue_pair
            .set_ece(Ece { options, ..own })
            .map_err(|error| Error::queue_pair(QpState::RTR, error))
    }

    /// The options in use, as an answer to the requested ones; `None` if the queue pair
    /// has none.
    fn ece_in_use(&self, asked: Ece) -> Result<Option<Ece>> {
        let own = self.own_ece()?;
        Ok(own.map(|own| match asked.vendor_id {
            0 => Ece::default(),
            vendor_id => Ece { vendor_id, ..own },
        }))
    }

    /// Rejects the peer if this side failed, so that it does not wait.
    fn or_reject(&self, outcome: Result<()>) -> Result<()> {
        if let Err(error) = &outcome {
            if !error.is_refusal() {
                // The caller gets the first error.
                let _ = self.id.reject(&[]);
                let _ = self.move_to_error();
            }
        }
        outcome
    }
}
