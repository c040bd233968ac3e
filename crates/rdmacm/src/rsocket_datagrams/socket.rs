//! A datagram socket: sending and receiving.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_addrinfo::AddrInfoResolver;
use rdmacm_core::{CmAddr, Deadline, RDMA_UDP_QKEY};
use rdmacm_rsocket::{DATAGRAM_BUFFER, DatagramHeader, ResolutionMessage};
use rdmacm_verbs::{AddressHandle, SendOperation};

use super::address::{gid_of, peer_address};
use super::path::Resolution;
use super::peers::SendTarget;
use super::resolution_service::ResolutionService;
use crate::attempt::Attempt;
use crate::data::Timeouts;
use crate::datagrams::{self, Datagram, check_length};
use crate::error::{Cause, Result};
use crate::event_loop::{EventLoop, MAX_EVENTS};
use crate::messages::Destination;
use crate::stage::Stage;

/// A queue pair for datagrams, and a UDP socket of the same address and port.
#[derive(Debug)]
pub(crate) struct Socket {
    datagrams: datagrams::Socket,
    service: Arc<ResolutionService>,
    event_loop: Arc<EventLoop>,
    resolver: Arc<AddrInfoResolver>,
    header: DatagramHeader,
    /// Whether the GIDs of the port are IP addresses, as on RoCE.
    has_ip_gids: bool,
    /// Whether the next datagram is taken from those that came over UDP, if there are any.
    is_udps_turn: AtomicBool,
    timeouts: Mutex<Timeouts>,
}

/// What was received.
#[derive(Debug)]
pub(super) enum Received {
    /// Bytes that fit, and the sender.
    Datagram(usize, SocketAddr),
    Nothing,
    /// Only datagrams that were not from a valid peer. There may be more.
    Dropped,
    Failed(Cause),
}

impl Socket {
    pub(super) fn new(
        event_loop: &Arc<EventLoop>,
        resolver: &Arc<AddrInfoResolver>,
        datagrams: datagrams::Socket,
        service: &Arc<ResolutionService>,
    ) -> Self {
        let address = service.address();
        Self {
            header: DatagramHeader::new(address),
            has_ip_gids: datagrams.gid() == Some(gid_of(address.ip())),
            datagrams,
            service: Arc::clone(service),
            event_loop: Arc::clone(event_loop),
            resolver: Arc::clone(resolver),
            is_udps_turn: AtomicBool::new(true),
            timeouts: Mutex::default(),
        }
    }

    pub(super) fn datagrams(&self) -> &datagrams::Socket {
        &self.datagrams
    }

    pub(super) fn service(&self) -> &ResolutionService {
        &self.service
    }

    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        &self.event_loop
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.service.address()
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.service.peer()
    }

    pub(crate) fn timeouts(&self) -> MutexGuard<'_, Timeouts> {
        self.timeouts.lock()
    }

    /// The length of the longest datagram: it fits either way, and into librdmacm's buffers.
    pub(crate) fn max_datagram(&self) -> usize {
        let by_queue_pair = self.datagrams.max_datagram().min(DATAGRAM_BUFFER);
        let by_queue_pair = by_queue_pair.saturating_sub(self.header.as_bytes().len());
        let by_udp = DATAGRAM_BUFFER - ResolutionMessage::header_size(self.local_addr().ip());
        by_queue_pair.min(by_udp)
    }

    pub(crate) async fn send(&self, bytes: &[u8], to: SocketAddr) -> Result<()> {
        let timeout = self.timeouts().write;
        let deadline = Deadline::from(timeout);
        let attempt = self.datagrams.attempt(deadline);
        let attempt = attempt.at_address(CmAddr::from(to));
        let sent = self.try_send(&attempt, bytes, to).await;
        sent.map_err(|cause| {
            self.check_closed();
            self.datagrams.fail(&attempt, Stage::Send, cause)
        })
    }

    async fn try_send(&self, attempt: &Attempt, bytes: &[u8], to: SocketAddr) -> Result<(), Cause> {
        let to = peer_address(to, self.local_addr());
        let to = to.filter(|to| self.service.may_send_to(to));
        let to = to.ok_or(Cause::NotAPeerAddress)?;
        check_length(bytes.len(), self.max_datagram())?;
        match self.service.target_for(&to, attempt.started) {
            SendTarget::QueuePair { address, qp_number } => {
                let sending = self.send_by_queue_pair(attempt, bytes, address, qp_number);
                sending.await
            }
            SendTarget::UdpWhileResolving(former) => {
                drop(former);
                self.resolve(to);
                self.send_by_udp(bytes, to)
            }
            SendTarget::Udp => self.send_by_udp(bytes, to),
        }
    }

    fn send_by_udp(&self, bytes: &[u8], to: SocketAddr) -> Result<(), Cause> {
        if let Some(cause) = self.check_closed() {
            return Err(cause);
        }
        self.service.send(bytes, to).map_err(Cause::Udp)
    }

    async fn send_by_queue_pair(
        &self,
        attempt: &Attempt,
        bytes: &[u8],
        address: AddressHandle,
        qp_number: u32,
    ) -> Result<(), Cause> {
        let slices = [self.header.as_bytes(), bytes].map(IoSlice::new);
        let to = Destination {
            address,
            qp_number,
            qkey: RDMA_UDP_QKEY,
        };
        let sending = self
            .datagrams
            .send_to(attempt, SendOperation::Send, &slices, &to);
        sending.await.map_err(|cause| match cause {
            Cause::DatagramTooLong { max, .. } => Cause::DatagramTooLong {
                bytes: bytes.len(),
                max: max.saturating_sub(self.header.as_bytes().len()),
            },
            cause => cause,
        })
    }

    /// Why nothing more can be transferred. From then on peers are not told its number.
    fn check_closed(&self) -> Option<Cause> {
        let cause = self.datagrams.closed();
        if cause.is_some() {
            self.service.close();
        }
        cause
    }

    /// Has the path to a peer resolved, by a task that may block.
    fn resolve(&self, to: SocketAddr) {
        let resolution = Resolution {
            service: Arc::downgrade(&self.service),
            resolver: Arc::clone(&self.resolver),
            addresses: self.datagrams.path_addresses(),
            from: self.local_addr(),
            to,
            found: None,
        };
        let executor = self.event_loop.executor();
        executor.spawn(Box::new(move || resolution.run()));
    }

    /// Receives the next datagram; of a socket that is connected, the next one of its peer.
    /// Returns the bytes that fit, and the sender.
    pub(crate) async fn receive(&self, into: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let timeout = self.timeouts().read;
        let deadline = Deadline::from(timeout);
        let attempt = self.datagrams.attempt(deadline);
        let received = self.wait(&attempt, into).await;
        received.map_err(|cause| self.datagrams.fail(&attempt, Stage::Receive, cause))
    }

    /// Receives a datagram that has arrived.
    pub(crate) fn try_receive(&self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
        self.service.receive_some();
        match self.take(into) {
            Received::Datagram(length, from) => Ok(Some((length, from))),
            Received::Nothing | Received::Dropped => Ok(None),
            Received::Failed(cause) => {
                let attempt = self.datagrams.attempt(Deadline::Never);
                Err(self.datagrams.fail(&attempt, Stage::Receive, cause))
            }
        }
    }

    /// Takes a datagram, in turn of those that came over UDP and to the queue pair. Why there
    /// are no more comes last.
    pub(super) fn take(&self, into: &mut [u8]) -> Received {
        self.service.receive_sometimes();
        if self.is_udps_turn.fetch_xor(true, Ordering::Relaxed) {
            if let Some(received) = self.take_udp(into) {
                return received;
            }
        }
        match self.take_from_queue_pair(into) {
            received @ Received::Datagram(..) => received,
            received => self.take_udp(into).unwrap_or(received),
        }
    }

    fn take_udp(&self, into: &mut [u8]) -> Option<Received> {
        let arrival = self.service.take_arrival()?;
        Some(Received::Datagram(copy(&arrival.bytes, into), arrival.from))
    }

    fn take_from_queue_pair(&self, into: &mut [u8]) -> Received {
        for _ in 0..MAX_EVENTS {
            let datagram = match self.datagrams.take_datagram() {
                None => return Received::Nothing,
                Some(Ok(datagram)) => datagram,
                Some(Err(cause)) => {
                    self.check_closed();
                    return Received::Failed(cause);
                }
            };
            if let Some((from, bytes)) = self.parse(&datagram) {
                return Received::Datagram(copy(bytes, into), from);
            }
        }
        Received::Dropped
    }

    /// The sender and the bytes of a datagram to the queue pair; `None` if it is none of a peer,
    /// or not sent from the sender's address as far as that can be told.
    fn parse<'a>(&self, datagram: &'a Datagram) -> Option<(SocketAddr, &'a [u8])> {
        let (from, bytes) = DatagramHeader::parse(datagram)?;
        let from = peer_address(from, self.local_addr())?;
        let gid = Some(gid_of(from.ip()));
        if self.has_ip_gids && datagram.source_gid() != gid {
            return None;
        }
        let is_wanted = self.peer_addr().is_none_or(|peer| peer == from);
        is_wanted.then_some((from, bytes))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.event_loop.unwatch(&*self.service);
    }
}

/// As many bytes as fit.
fn copy(bytes: &[u8], into: &mut [u8]) -> usize {
    let length = bytes.len().min(into.len());
    for (to, from) in into.iter_mut().zip(bytes) {
        *to = *from;
    }
    length
}
