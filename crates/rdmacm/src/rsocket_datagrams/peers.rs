//! What is known of peers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rdmacm_core::{AhAttr, RDMA_UDP_QKEY};

use crate::datagrams::{DatagramAddr, Newest};

/// The limit of peers that are remembered.
const MAX_PEERS: usize = 1024;

/// How long the number of a peer's queue pair is used without asking the peer again: a program
/// that was started again has another one.
const CONFIRM_AFTER: Duration = Duration::from_secs(10);

/// How long datagrams travel over UDP to a peer to which no path was found.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The way that a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Over UDP, which also asks for the number of the peer's queue pair.
    Udp,
    /// To the peer's queue pair, to which the path is unknown.
    UnknownPath,
    /// To the peer's queue pair.
    QueuePair(DatagramAddr),
}

/// The sockets to which datagrams were sent, or whose queue pairs are known.
#[derive(Debug, Default)]
pub(super) struct Peers(Newest<SocketAddr, Peer, MAX_PEERS>);

#[derive(Debug, Default)]
struct Peer {
    qp_number: Option<u32>,
    path: Path,
    /// When to ask for the number again, once it was used.
    confirm_at: Option<Instant>,
}

#[derive(Debug, Default)]
enum Path {
    #[default]
    Unknown,
    Known(AhAttr),
    NotFound {
        again_at: Instant,
    },
}

impl Peers {
    /// The way of the next datagram to a peer.
    pub(super) fn way(&mut self, to: &SocketAddr, now: Instant) -> Way {
        let Some(peer) = self.0.get_mut(to) else {
            self.add(*to, Peer::default());
            return Way::Udp;
        };
        let Some(qp_number) = peer.qp_number else {
            return Way::Udp;
        };
        match peer.path {
            Path::NotFound { again_at } if now < again_at => Way::Udp,
            Path::Unknown | Path::NotFound { .. } => Way::UnknownPath,
            Path::Known(ah_attr) => {
                let confirm_at = *peer.confirm_at.get_or_insert(now + CONFIRM_AFTER);
                if now >= confirm_at {
                    peer.confirm_at = None;
                    return Way::Udp;
                }
                Way::QueuePair(DatagramAddr {
                    ah_attr,
                    qp_number,
                    qkey: RDMA_UDP_QKEY,
                })
            }
        }
    }

    /// Whether the peer's queue pair is known.
    pub(super) fn knows(&self, peer: &SocketAddr) -> bool {
        let peer = self.0.get(peer);
        peer.is_some_and(|peer| peer.qp_number.is_some())
    }

    /// A datagram from a peer tells the number of its queue pair.
    pub(super) fn asked(&mut self, from: SocketAddr, qp_number: u32) {
        if self.0.get(&from).is_none() {
            self.add(from, Peer::default());
        }
        self.replied(&from, qp_number);
    }

    /// A peer tells the number of its queue pair. A peer that was not asked is ignored.
    pub(super) fn replied(&mut self, from: &SocketAddr, qp_number: u32) {
        if let Some(peer) = self.0.get_mut(from) {
            peer.qp_number = Some(qp_number);
            peer.confirm_at = None;
        }
    }

    pub(super) fn found_path(&mut self, to: &SocketAddr, ah_attr: AhAttr) {
        if let Some(peer) = self.0.get_mut(to) {
            peer.path = Path::Known(ah_attr);
        }
    }

    pub(super) fn found_no_path(&mut self, to: &SocketAddr, now: Instant) {
        if let Some(peer) = self.0.get_mut(to) {
            let again_at = now + RESOLVE_AGAIN_AFTER;
            peer.path = Path::NotFound { again_at };
        }
    }

    fn add(&mut self, address: SocketAddr, peer: Peer) {
        drop(self.0.insert(address, peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        "10.71.1.2:7174".parse().unwrap()
    }

    fn qp_number(way: Way) -> Option<u32> {
        match way {
            Way::QueuePair(addr) => Some(addr.qp_number),
            Way::Udp | Way::UnknownPath => None,
        }
    }

    #[test]
    fn datagrams_go_over_udp_until_the_peer_has_replied() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        assert!(!peers.knows(&peer()));
        assert_eq!(peers.way(&peer(), now), Way::Udp);
        assert_eq!(peers.way(&peer(), now), Way::Udp);
        peers.replied(&peer(), 17);
        assert!(peers.knows(&peer()));
        assert_eq!(peers.way(&peer(), now), Way::UnknownPath);
        peers.found_path(&peer(), AhAttr::default());
        assert_eq!(qp_number(peers.way(&peer(), now)), Some(17));
    }

    #[test]
    fn a_peer_that_has_asked_is_known() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.asked(peer(), 17);
        assert_eq!(peers.way(&peer(), now), Way::UnknownPath);
    }

    #[test]
    fn a_reply_that_was_not_asked_for_is_ignored() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.replied(&peer(), 17);
        assert_eq!(peers.way(&peer(), now), Way::Udp);
    }

    #[test]
    fn a_number_is_confirmed_now_and_then() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.asked(peer(), 17);
        peers.found_path(&peer(), AhAttr::default());
        assert_eq!(qp_number(peers.way(&peer(), now)), Some(17));
        let later = now + CONFIRM_AFTER;
        assert_eq!(peers.way(&peer(), later), Way::Udp);
        // One datagram asks; without a reply the next ones use what is known.
        assert_eq!(qp_number(peers.way(&peer(), later)), Some(17));
        assert_eq!(peers.way(&peer(), later + CONFIRM_AFTER), Way::Udp);
        // The peer was started again.
        peers.replied(&peer(), 18);
        let way = peers.way(&peer(), later + CONFIRM_AFTER);
        assert_eq!(qp_number(way), Some(18));
    }

    #[test]
    fn a_path_that_was_not_found_is_resolved_later() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.asked(peer(), 17);
        peers.found_no_path(&peer(), now);
        assert_eq!(peers.way(&peer(), now), Way::Udp);
        let later = now + RESOLVE_AGAIN_AFTER;
        assert_eq!(peers.way(&peer(), later), Way::UnknownPath);
    }
}
