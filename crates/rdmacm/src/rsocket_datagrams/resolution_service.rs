//! The UDP socket of a datagram socket.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Waker;
use std::time::Instant;

use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};
use rdmacm_rsocket::{DATAGRAM_BUFFER, ResolutionKind, ResolutionMessage};
use rdmacm_verbs::{AddressHandle, Context, QueuePair};

use super::address::peer_address;
use super::peers::{Peers, SendTarget};
use crate::event_loop::{Drained, EventSource, MAX_EVENTS, WaiterQueue};

/// Of so many calls that do not wait, one reads what has arrived over UDP.
const READ_EVERY: u32 = 32;

/// The numbers of queue pairs that are special: of management, and of groups.
const SPECIAL_NUMBERS: [u32; 3] = [0, 1, 0xff_ffff];

/// A datagram that came over UDP.
#[derive(Debug)]
pub(super) struct UdpArrival {
    pub(super) from: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// Tells peers the number of the socket's queue pair, learns theirs, and carries datagrams until
/// it knows them.
#[derive(Debug)]
pub(super) struct ResolutionService {
    udp: UdpSocket,
    address: SocketAddr,
    qp_number: u32,
    /// The only peer, of a socket that is connected.
    peer: Option<SocketAddr>,
    /// How many datagrams may arrive before the first of them is received.
    max_arrivals: usize,
    state: Mutex<State>,
    calls: AtomicU32,
    is_closed: AtomicBool,
    /// That of the queue pair.
    context: Context,
}

#[derive(Debug, Default)]
struct State {
    peers: Peers,
    arrivals: VecDeque<UdpArrival>,
    waiters: WaiterQueue,
}

impl ResolutionService {
    /// Of a UDP socket that is bound to this address, and a queue pair of this context.
    ///
    /// # Errors
    /// The error number of `ioctl(2)`.
    pub(super) fn new(
        udp: UdpSocket,
        address: SocketAddr,
        queue_pair: &QueuePair,
        peer: Option<SocketAddr>,
        max_arrivals: usize,
    ) -> io::Result<Self> {
        udp.set_nonblocking(true)?;
        Ok(Self {
            udp,
            address,
            qp_number: queue_pair.number(),
            context: queue_pair.context().clone(),
            peer,
            max_arrivals,
            state: Mutex::default(),
            calls: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The only peer, of a socket that is connected.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The target of the next datagram to a peer.
    pub(super) fn target_for(&self, to: &SocketAddr, now: Instant) -> SendTarget {
        if self.state().peers.is_asked(to) {
            // Perhaps its reply is there, and nobody has waited since.
            self.receive_some();
        } else {
            self.receive_sometimes();
        }
        let mut state = self.state();
        let replaced = state.peers.add(to, Instant::now);
        let target = state.peers.target_for(to, now);
        drop(state);
        // Not under the lock: destroying an address handle is a system call.
        drop(replaced);
        target
    }

    /// Whether a datagram may be sent there: to anybody, unless the socket is connected.
    pub(super) fn may_send_to(&self, to: &SocketAddr) -> bool {
        self.peer.is_none_or(|peer| peer == *to)
    }

    /// The path to a peer is resolved, or was not found.
    pub(super) fn resolved(&self, to: &SocketAddr, address: Option<AddressHandle>) {
        let unused = self.state().peers.resolved(to, address);
        drop(unused);
    }

    /// Sends a datagram over UDP. One for which the kernel has no room is lost, as it may be
    /// anywhere on its way.
    ///
    /// # Errors
    /// The error number of `sendto(2)`.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.send_message(ResolutionKind::Data, datagram, to)
    }

    pub(super) fn take_arrival(&self) -> Option<UdpArrival> {
        if self.context.is_in_child() {
            return None;
        }
        self.state().arrivals.pop_front()
    }

    pub(super) fn register(&self, key: u64, waker: &Waker) {
        let replaced = self.state().waiters.add(key, waker);
        drop(replaced);
    }

    /// Removes a waiter. If it was woken for a datagram, another one is woken instead.
    pub(super) fn deregister(&self, key: u64) {
        let mut state = self.state();
        let removed = state.waiters.remove(key);
        let next = state.waiters.first().filter(|_| !state.arrivals.is_empty());
        let next = next.cloned();
        drop(state);
        drop(removed);
        if let Some(next) = next {
            next.wake();
        }
    }

    /// The queue pair is closed: peers are told its number no more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Handles what has arrived now and then, for callers that never wait: whoever waits reads
    /// it otherwise.
    pub(super) fn receive_sometimes(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        if calls % READ_EVERY == READ_EVERY - 1 {
            self.receive_some();
        }
    }

    /// Handles what has arrived.
    pub(super) fn receive_some(&self) {
        // What is read from the socket is lost to the parent.
        if self.context.is_in_child() {
            return;
        }
        // One that is longer than a peer sends is dropped, rather than cut.
        let mut buffer = [0; DATAGRAM_BUFFER + 1];
        for _ in 0..MAX_EVENTS {
            match self.udp.recv_from(&mut buffer) {
                Ok((length, _)) if length > DATAGRAM_BUFFER => {}
                Ok((length, from)) => {
                    self.received(buffer.get(..length).unwrap_or_default(), from);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // There are no more; or reading has consumed an error of the network, which
                // concerns a datagram that may be lost anyway.
                Err(_) => return,
            }
        }
    }

    fn received(&self, bytes: &[u8], from: SocketAddr) {
        let Some((message, datagram)) = ResolutionMessage::parse(bytes) else {
            return;
        };
        let Some(from) = peer_address(from, self.address) else {
            return;
        };
        let is_strange = self.peer.is_some_and(|peer| peer != from)
            || message.address.is_ipv4() != from.is_ipv4()
            || SPECIAL_NUMBERS.contains(&message.qp_number);
        if is_strange || self.is_closed() {
            return;
        }
        match message.kind {
            ResolutionKind::Reply => {
                let mut state = self.state();
                state.peers.received_reply(&from, message.qp_number);
            }
            ResolutionKind::Data => {
                self.received_data(datagram, from, message.qp_number);
                // A peer whose reply is lost asks again with its next datagram.
                let _ = self.send_message(ResolutionKind::Reply, &[], from);
            }
        }
    }

    fn received_data(&self, datagram: &[u8], from: SocketAddr, qp_number: u32) {
        let mut state = self.state();
        state.peers.received_request(from, qp_number, Instant::now);
        if state.arrivals.len() >= self.max_arrivals {
            return;
        }
        let bytes = datagram.to_vec();
        state.arrivals.push_back(UdpArrival { from, bytes });
        let waiter = state.waiters.first().cloned();
        drop(state);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    fn send_message(
        &self,
        kind: ResolutionKind,
        datagram: &[u8],
        to: SocketAddr,
    ) -> io::Result<()> {
        let message = ResolutionMessage {
            kind,
            qp_number: self.qp_number,
            address: self.address.ip(),
        };
        match self.udp.send_to(&message.to_bytes(datagram), to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            sent => sent.map(drop),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl EventSource for ResolutionService {
    fn readiness(&self) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.udp.as_fd())
    }

    fn drain(&self) -> rdmacm_core::Result<Drained> {
        if self.is_closed() {
            return Ok(Drained::Closed);
        }
        self.receive_some();
        Ok(Drained::Open)
    }

    fn is_in_child(&self) -> bool {
        self.context.is_in_child()
    }
}
