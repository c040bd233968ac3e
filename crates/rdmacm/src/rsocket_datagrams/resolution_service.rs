//! The UDP socket of a datagram socket.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use nix::errno::Errno;
use rdmacm_core::AhAttr;
use rdmacm_rsocket::{DATAGRAM_BUFFER, ResolutionKind, ResolutionMessage};

use super::peers::{Peers, Way};
use crate::event_loop::{Drained, EventSource, MAX_EVENTS, WaiterQueue};

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
    /// How many datagrams may arrive before the first of them is received.
    max_arrivals: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    peers: Peers,
    arrivals: VecDeque<UdpArrival>,
    waiters: WaiterQueue,
}

impl ResolutionService {
    /// Of a UDP socket that is bound to this address.
    ///
    /// # Errors
    /// The error number of `ioctl(2)`.
    pub(super) fn new(
        udp: UdpSocket,
        address: SocketAddr,
        qp_number: u32,
        max_arrivals: usize,
    ) -> io::Result<Self> {
        udp.set_nonblocking(true)?;
        Ok(Self {
            udp,
            address,
            qp_number,
            max_arrivals,
            state: Mutex::default(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The way of the next datagram to a peer.
    pub(super) fn way(&self, to: &SocketAddr, now: Instant) -> Way {
        if !self.state().peers.knows(to) {
            // Perhaps its reply is there, and nobody has waited since.
            self.receive_some();
        }
        self.state().peers.way(to, now)
    }

    pub(super) fn found_path(&self, to: &SocketAddr, ah_attr: AhAttr) {
        self.state().peers.found_path(to, ah_attr);
    }

    pub(super) fn found_no_path(&self, to: &SocketAddr, now: Instant) {
        self.state().peers.found_no_path(to, now);
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

    /// Handles what has arrived.
    pub(super) fn receive_some(&self) {
        let mut buffer = [0; DATAGRAM_BUFFER];
        for _ in 0..MAX_EVENTS {
            match self.udp.recv_from(&mut buffer) {
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
        if message.address.is_ipv4() != from.is_ipv4() {
            return;
        }
        match message.kind {
            ResolutionKind::Reply => self.state().peers.replied(&from, message.qp_number),
            ResolutionKind::Data => {
                let mut state = self.state();
                state.peers.asked(from, message.qp_number);
                let has_room = state.arrivals.len() < self.max_arrivals;
                if has_room {
                    let bytes = datagram.to_vec();
                    state.arrivals.push_back(UdpArrival { from, bytes });
                }
                let waiter = state.waiters.first().filter(|_| has_room).cloned();
                drop(state);
                if let Some(waiter) = waiter {
                    waiter.wake();
                }
                // A peer whose reply is lost asks again with its next datagram.
                let _ = self.send_message(ResolutionKind::Reply, &[], from);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSource for ResolutionService {
    fn readiness(&self) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.udp.as_fd())
    }

    fn drain(&self) -> rdmacm_core::Result<Drained> {
        self.receive_some();
        Ok(Drained::Open)
    }
}
