//! What is known of peers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rdmacm_verbs::AddressHandle;

use crate::bounded_map::BoundedMap;

/// How many peers are remembered that were sent to, and separately how many that only sent their
/// numbers: any host can do that.
const MAX_PEERS: usize = 1024;

/// How long the number of a peer's queue pair is used without asking the peer again: a program
/// that was started again has another one.
const CONFIRM_AFTER: Duration = Duration::from_secs(10);

/// When a path that was not found is resolved again.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// How long a path is used: the peer's address may move from this host or to it.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// How many paths are resolved at a time.
const MAX_RESOLUTIONS: usize = 8;

/// The target of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendTarget<A = AddressHandle> {
    /// Over UDP, which also asks for the number of the peer's queue pair.
    Udp,
    /// The same; the caller resolves the path meanwhile, and drops the former address handle, if
    /// there was one, without a lock.
    UdpWhileResolving(Option<A>),
    /// To the peer's queue pair.
    QueuePair { address: A, qp_number: u32 },
}

/// The peers of a socket, with address handles of this type.
#[derive(Debug)]
pub(super) struct Peers<A = AddressHandle> {
    sent_to: BoundedMap<SocketAddr, Peer<A>, MAX_PEERS>,
    /// The numbers of others, and when they came by the system's clock: whoever receives them need
    /// not know another one.
    numbers: BoundedMap<SocketAddr, (u32, Instant), MAX_PEERS>,
    resolutions: usize,
}

impl<A> Default for Peers<A> {
    fn default() -> Self {
        Self {
            sent_to: BoundedMap::default(),
            numbers: BoundedMap::default(),
            resolutions: 0,
        }
    }
}

#[derive(Debug)]
struct Peer<A> {
    qp_number: Option<u32>,
    path: PathState<A>,
    /// It was asked for its number, and has not replied since.
    is_asked: bool,
    /// It has contradicted itself, so that only a reply counts.
    must_reply: bool,
    /// When to ask for the number again, once it was used.
    confirm_at: Option<Instant>,
}

#[derive(Debug)]
enum PathState<A> {
    Unknown,
    BeingResolved { since: Instant },
    Known { address: A, until: Instant },
    NotFound { again_at: Instant },
}

impl<A: Clone> Peers<A> {
    /// Adds a peer that is sent to next, unless it is there. Returns the address handle of the
    /// one that it replaces, to be dropped without a lock.
    #[must_use]
    pub(super) fn add(&mut self, to: &SocketAddr, now: impl Fn() -> Instant) -> Option<A> {
        if self.sent_to.get(to).is_some() {
            return None;
        }
        // An old one may be that of a program that has ended since.
        let numbers = self.numbers.get(to);
        let number = numbers.filter(|(_, since)| now() < *since + CONFIRM_AFTER);
        let peer = Peer {
            qp_number: number.map(|(number, _)| *number),
            path: PathState::Unknown,
            is_asked: false,
            must_reply: false,
            confirm_at: None,
        };
        match self.sent_to.insert(*to, peer)?.path {
            PathState::Known { address, .. } => Some(address),
            _ => None,
        }
    }

    /// The target of the next datagram to a peer that was [added](Self::add). Whoever resolves
    /// its path calls [`resolved`](Self::resolved) afterwards.
    pub(super) fn target_for(&mut self, to: &SocketAddr, now: Instant) -> SendTarget<A> {
        let Some(peer) = self.sent_to.get_mut(to) else {
            return SendTarget::Udp;
        };
        let must_resolve = match peer.path {
            PathState::Unknown => true,
            PathState::NotFound { again_at: until } | PathState::Known { until, .. } => {
                until <= now
            }
            PathState::BeingResolved { .. } => false,
        };
        if must_resolve && self.resolutions < MAX_RESOLUTIONS {
            self.resolutions += 1;
            let resolving = PathState::BeingResolved { since: now };
            let former = std::mem::replace(&mut peer.path, resolving);
            peer.is_asked = true;
            return SendTarget::UdpWhileResolving(match former {
                PathState::Known { address, .. } => Some(address),
                _ => None,
            });
        }
        let (PathState::Known { address, .. }, Some(qp_number)) = (&peer.path, peer.qp_number)
        else {
            peer.is_asked = true;
            return SendTarget::Udp;
        };
        if now >= *peer.confirm_at.get_or_insert(now + CONFIRM_AFTER) {
            peer.confirm_at = None;
            peer.is_asked = true;
            return SendTarget::Udp;
        }
        SendTarget::QueuePair {
            address: address.clone(),
            qp_number,
        }
    }

    /// Whether a reply of the peer is to come.
    pub(super) fn is_asked(&self, peer: &SocketAddr) -> bool {
        self.sent_to.get(peer).is_some_and(|peer| peer.is_asked)
    }

    /// A peer has sent its number with a datagram. If another one is known, the peer is asked:
    /// the datagram may be of somebody else.
    pub(super) fn received_request(
        &mut self,
        from: SocketAddr,
        qp_number: u32,
        now: impl FnOnce() -> Instant,
    ) {
        match self.sent_to.get_mut(&from) {
            Some(peer) => match peer.qp_number {
                None if !peer.must_reply => peer.qp_number = Some(qp_number),
                Some(known) if known != qp_number => {
                    peer.qp_number = None;
                    peer.must_reply = true;
                }
                None | Some(_) => {}
            },
            None => drop(self.numbers.insert(from, (qp_number, now()))),
        }
    }

    /// A peer has replied with its number. One that was not asked is ignored.
    pub(super) fn received_reply(&mut self, from: &SocketAddr, qp_number: u32) {
        if let Some(peer) = self.sent_to.get_mut(from).filter(|peer| peer.is_asked) {
            peer.qp_number = Some(qp_number);
            peer.is_asked = false;
            peer.must_reply = false;
            peer.confirm_at = None;
        }
    }

    /// The path to a peer is resolved, or was not found. Returns an address handle that is of
    /// no use any more, to be dropped without a lock.
    pub(super) fn resolved(&mut self, to: &SocketAddr, address: Option<A>) -> Option<A> {
        self.resolutions = self.resolutions.saturating_sub(1);
        let Some(peer) = self.sent_to.get_mut(to) else {
            return address;
        };
        let PathState::BeingResolved { since } = peer.path else {
            return address;
        };
        peer.path = match address {
            Some(address) => PathState::Known {
                address,
                until: since + KNOWN_FOR,
            },
            None => PathState::NotFound {
                again_at: since + RESOLVE_AGAIN_AFTER,
            },
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        "10.71.1.2:7174".parse().unwrap()
    }

    impl Peers<()> {
        fn target(&mut self, to: &SocketAddr, now: Instant) -> SendTarget<()> {
            assert_eq!(self.add(to, || now), None);
            self.target_for(to, now)
        }

        fn has_sent(&mut self, from: SocketAddr, qp_number: u32, now: Instant) {
            self.received_request(from, qp_number, || now);
        }
    }

    /// With the first datagram sent, and the path resolved.
    fn resolved(peers: &mut Peers<()>, now: Instant) {
        assert_eq!(
            peers.target(&peer(), now),
            SendTarget::UdpWhileResolving(None)
        );
        peers.resolved(&peer(), Some(()));
    }

    fn queue_pair(qp_number: u32) -> SendTarget<()> {
        let address = ();
        SendTarget::QueuePair { address, qp_number }
    }

    #[test]
    fn datagrams_go_over_udp_until_the_peer_has_replied() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        resolved(&mut peers, now);
        assert!(peers.is_asked(&peer()));
        assert_eq!(peers.target(&peer(), now), SendTarget::Udp);
        peers.received_reply(&peer(), 17);
        assert!(!peers.is_asked(&peer()));
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
    }

    #[test]
    fn datagrams_go_over_udp_until_the_path_is_resolved() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        assert_eq!(
            peers.target(&peer(), now),
            SendTarget::UdpWhileResolving(None)
        );
        peers.received_reply(&peer(), 17);
        assert_eq!(peers.target(&peer(), now), SendTarget::Udp);
        peers.resolved(&peer(), Some(()));
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
    }

    #[test]
    fn a_peer_that_has_sent_its_number_need_not_reply() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        resolved(&mut peers, now);
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
    }

    #[test]
    fn a_number_that_was_sent_long_ago_is_asked_for() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        let later = now + CONFIRM_AFTER;
        resolved(&mut peers, later);
        assert_eq!(peers.target(&peer(), later), SendTarget::Udp);
        peers.received_reply(&peer(), 23);
        assert_eq!(peers.target(&peer(), later), queue_pair(23));
    }

    #[test]
    fn another_number_is_asked_for() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        resolved(&mut peers, now);
        peers.has_sent(peer(), 17, now);
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
        for _ in 0..2 {
            peers.has_sent(peer(), 18, now);
            assert_eq!(peers.target(&peer(), now), SendTarget::Udp);
        }
        peers.received_reply(&peer(), 19);
        assert_eq!(peers.target(&peer(), now), queue_pair(19));
    }

    #[test]
    fn a_reply_without_a_question_is_ignored() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.received_reply(&peer(), 17);
        resolved(&mut peers, now);
        assert_eq!(peers.target(&peer(), now), SendTarget::Udp);
        peers.received_reply(&peer(), 17);
        peers.received_reply(&peer(), 18);
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
    }

    #[test]
    fn a_number_is_confirmed_now_and_then() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        resolved(&mut peers, now);
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
        let later = now + CONFIRM_AFTER;
        assert_eq!(peers.target(&peer(), later), SendTarget::Udp);
        // One datagram asks; without a reply the next ones use what is known.
        assert_eq!(peers.target(&peer(), later), queue_pair(17));
        let later = later + CONFIRM_AFTER;
        assert_eq!(peers.target(&peer(), later), SendTarget::Udp);
        // The peer was started again.
        peers.received_reply(&peer(), 18);
        assert_eq!(peers.target(&peer(), later), queue_pair(18));
    }

    #[test]
    fn a_path_that_was_not_found_is_resolved_later() {
        let (mut peers, now) = (Peers::<()>::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        assert_eq!(
            peers.target(&peer(), now),
            SendTarget::UdpWhileResolving(None)
        );
        peers.resolved(&peer(), None);
        assert_eq!(peers.target(&peer(), now), SendTarget::Udp);
        let later = now + RESOLVE_AGAIN_AFTER;
        assert_eq!(
            peers.target(&peer(), later),
            SendTarget::UdpWhileResolving(None)
        );
    }

    #[test]
    fn a_path_is_resolved_again_after_a_while() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        resolved(&mut peers, now);
        let later = now + KNOWN_FOR;
        let target = peers.target(&peer(), later);
        assert_eq!(target, SendTarget::UdpWhileResolving(Some(())));
        assert_eq!(peers.target(&peer(), later), SendTarget::Udp);
        peers.resolved(&peer(), Some(()));
        assert_eq!(peers.target(&peer(), later), queue_pair(17));
    }

    #[test]
    fn some_paths_are_resolved_at_a_time() {
        let (mut peers, now) = (Peers::<()>::default(), Instant::now());
        let peer = |port| SocketAddr::new(peer().ip(), port);
        let last = u16::try_from(MAX_RESOLUTIONS).unwrap();
        for port in 1..=last {
            let target = peers.target(&peer(port), now);
            assert_eq!(target, SendTarget::UdpWhileResolving(None));
        }
        assert_eq!(peers.target(&peer(last + 1), now), SendTarget::Udp);
        peers.resolved(&peer(1), Some(()));
        let target = peers.target(&peer(last + 1), now);
        assert_eq!(target, SendTarget::UdpWhileResolving(None));
    }

    #[test]
    fn hosts_that_send_their_numbers_displace_no_peer() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        peers.has_sent(peer(), 17, now);
        resolved(&mut peers, now);
        for port in 1..=u16::MAX {
            peers.has_sent(SocketAddr::new([10, 71, 1, 3].into(), port), 18, now);
        }
        assert_eq!(peers.target(&peer(), now), queue_pair(17));
    }
}
