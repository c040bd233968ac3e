//! A datagram socket: sending and receiving.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdmacm_core::{AhAttr, CmAddr, Deadline};
use rdmacm_rsocket::{DATAGRAM_BUFFER, DatagramHeader, ResolutionMessage};
use rdmacm_verbs::SendOperation;

use super::peers::Way;
use super::resolution_service::ResolutionService;
use crate::connect::{Attempt, ConnectConfig, ConnectTarget, SourceAddress, resolve};
use crate::datagrams::{self, DatagramAddr, check_length};
use crate::error::{Cause, Result};
use crate::event_loop::{EventLoop, EventSource};
use crate::id_options::IdOptions;
use crate::stage::Stage;
use crate::stream::Timeouts;

/// How long resolving a path may take. Until then, and if there is none, datagrams travel over
/// UDP.
const RESOLUTION_DEADLINE: Duration = Duration::from_secs(2);

/// A queue pair for datagrams, and a UDP socket of the same address and port.
#[derive(Debug)]
pub(crate) struct Socket {
    datagrams: datagrams::Socket,
    service: Arc<ResolutionService>,
    event_loop: Arc<EventLoop>,
    id_options: IdOptions,
    header: DatagramHeader,
    /// The only peer, of a socket that is connected.
    peer: Option<SocketAddr>,
    timeouts: Mutex<Timeouts>,
}

impl Socket {
    pub(super) fn new(
        event_loop: &Arc<EventLoop>,
        datagrams: datagrams::Socket,
        service: &Arc<ResolutionService>,
        id_options: IdOptions,
        peer: Option<SocketAddr>,
    ) -> Self {
        Self {
            datagrams,
            header: DatagramHeader::new(service.address()),
            service: Arc::clone(service),
            event_loop: Arc::clone(event_loop),
            id_options,
            peer,
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
        self.peer
    }

    pub(crate) fn timeouts(&self) -> MutexGuard<'_, Timeouts> {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The length of the longest datagram: it fits either way, and into librdmacm's buffers.
    pub(crate) fn max_datagram(&self) -> usize {
        let header = self.header.as_bytes().len();
        let by_queue_pair = self.datagrams.max_datagram().min(DATAGRAM_BUFFER) - header;
        let by_udp = DATAGRAM_BUFFER - ResolutionMessage::size(self.local_addr().ip());
        by_queue_pair.min(by_udp)
    }

    pub(crate) async fn send(&self, bytes: &[u8], to: SocketAddr) -> Result<()> {
        let timeout = self.timeouts().write;
        let deadline = timeout.map_or(Deadline::Never, Deadline::After);
        let attempt = self.datagrams.attempt(deadline);
        let attempt = attempt.at_address(CmAddr::from(to));
        let sent = self.try_send(&attempt, bytes, to).await;
        sent.map_err(|cause| self.datagrams.fail(&attempt, Stage::Send, cause))
    }

    async fn try_send(&self, attempt: &Attempt, bytes: &[u8], to: SocketAddr) -> Result<(), Cause> {
        if to.is_ipv4() != self.local_addr().is_ipv4() {
            return Err(Cause::NoAddress);
        }
        check_length(bytes.len(), self.max_datagram())?;
        let to = with_local_scope(to, self.local_addr());
        let mut way = self.service.way(&to, attempt.started);
        if way == Way::UnknownPath {
            match self.resolve(attempt, to).await {
                Some(ah_attr) => self.service.found_path(&to, ah_attr),
                None => self.service.found_no_path(&to, attempt.event_loop.now()),
            }
            way = self.service.way(&to, attempt.event_loop.now());
        }
        match way {
            Way::QueuePair(addr) => self.send_by_queue_pair(attempt, bytes, &addr).await,
            Way::Udp | Way::UnknownPath => {
                let sent = self.service.send(bytes, to);
                sent.map_err(Cause::Udp)
            }
        }
    }

    async fn send_by_queue_pair(
        &self,
        attempt: &Attempt,
        bytes: &[u8],
        to: &DatagramAddr,
    ) -> Result<(), Cause> {
        let slices = [self.header.as_bytes(), bytes].map(IoSlice::new);
        let sending = self
            .datagrams
            .try_send(attempt, SendOperation::Send, &slices, to);
        sending.await
    }

    /// The path to a peer; `None` if there is none, or it was not found in time.
    async fn resolve(&self, attempt: &Attempt, to: SocketAddr) -> Option<AhAttr> {
        let config = ConnectConfig {
            options: self.id_options,
            source: SourceAddress::Address(CmAddr::from(self.local_addr()).with_port(0)),
            ..ConnectConfig::default()
        };
        let target = ConnectTarget::from(CmAddr::from(to));
        let mut limited = attempt.clone();
        limited.until = attempt.end_within(Some(RESOLUTION_DEADLINE));
        let routed = resolve(&limited, &config, &target).await.ok()?;
        let paths = routed.id.id().path_records().ok()?;
        self.datagrams.ah_attr(&paths.first()?.record)
    }

    /// Receives the next datagram; of a socket that is connected, the next one of its peer.
    /// Returns the bytes that fit, and the sender.
    pub(crate) async fn receive(&self, into: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let timeout = self.timeouts().read;
        let deadline = timeout.map_or(Deadline::Never, Deadline::After);
        let attempt = self.datagrams.attempt(deadline);
        let received = self.wait(&attempt, |socket| socket.take(into));
        let received = received.await.and_then(|received| received);
        received.map_err(|cause| self.datagrams.fail(&attempt, Stage::Receive, cause))
    }

    /// Receives a datagram that has arrived.
    pub(crate) fn try_receive(&self, into: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
        self.service.receive_some();
        let received = self.take(into).transpose();
        received.map_err(|cause| {
            let attempt = self.datagrams.attempt(Deadline::Never);
            self.datagrams.fail(&attempt, Stage::Receive, cause)
        })
    }

    fn take(&self, into: &mut [u8]) -> Option<Result<(usize, SocketAddr), Cause>> {
        let is_wanted = |from: &SocketAddr| self.peer.is_none_or(|peer| peer == *from);
        while let Some(datagram) = self.datagrams.take_datagram() {
            let datagram = match datagram {
                Ok(datagram) => datagram,
                Err(cause) => return Some(Err(cause)),
            };
            let Some((from, bytes)) = DatagramHeader::parse(&datagram) else {
                continue;
            };
            let from = with_local_scope(from, self.local_addr());
            if is_wanted(&from) {
                return Some(Ok((copy(bytes, into), from)));
            }
        }
        while let Some(arrival) = self.service.take_arrival() {
            if is_wanted(&arrival.from) {
                return Some(Ok((copy(&arrival.bytes, into), arrival.from)));
            }
        }
        None
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let source: Arc<dyn EventSource> = self.service.clone();
        self.event_loop.unwatch(&source);
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

/// A link-local address is of the interface that the socket is bound to: headers do not say.
/// The flow is none of a peer's identity.
fn with_local_scope(mut address: SocketAddr, local: SocketAddr) -> SocketAddr {
    if let (SocketAddr::V6(address), SocketAddr::V6(local)) = (&mut address, local) {
        address.set_flowinfo(0);
        if address.ip().is_unicast_link_local() {
            address.set_scope_id(local.scope_id());
        } else {
            address.set_scope_id(0);
        }
    }
    address
}
