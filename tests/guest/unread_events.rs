//! Destroying does not wait for an event that the caller still holds: each kind of
//! event outlives its id, channel and listener, which are dropped in every order.

use std::any::Any;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use rdmacm_core::{
    CmAddr, CmId, ConnParam, Event, EventChannel, EventKind, JoinFlags, PortSpace, UdParam,
};
use rdmacm_tests::{Listening, PATIENCE, Side, Site, Soft, expect};
use rdmacm_tests_macros::case;

use crate::tcp;

pub(crate) mod device;

/// An event and the objects it depends on, which are dropped one by one.
struct Kept {
    event: Event,
    kind: EventKind,
    parts: [Option<Box<dyn Any>>; 3],
    /// Dropped last.
    _rest: Box<dyn Any>,
}

const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

impl Kept {
    /// The next event of the channel.
    fn next(
        kind: EventKind,
        id: CmId,
        channel: EventChannel,
        third: impl Any,
        rest: impl Any,
    ) -> Self {
        let event = channel.next_event(PATIENCE).unwrap();
        Self::of(
            event,
            kind,
            [Box::new(id), Box::new(channel), Box::new(third)],
            rest,
        )
    }

    fn of(event: Event, kind: EventKind, parts: [Box<dyn Any>; 3], rest: impl Any) -> Self {
        assert_eq!(event.kind(), kind);
        Self {
            event,
            kind,
            parts: parts.map(Some),
            _rest: Box::new(rest),
        }
    }

    fn drop_in_order(mut self, order: [usize; 3]) {
        let contents = |event: &Event| (event.status(), event.private_data().to_vec());
        let before = contents(&self.event);
        for at in order {
            let part = self.parts[at].take();
            let begun = Instant::now();
            drop(part);
            let took = begun.elapsed();
            assert!(took < PATIENCE / 10, "{order:?}: {took:?}");
        }
        let event = &self.event;
        assert_eq!(event.kind(), self.kind);
        assert!(event.id().is_destroyed());
        assert_eq!(contents(event), before);
        let failure = event.failure();
        assert_eq!(failure.is_some(), event.kind().is_failure());
    }
}

fn in_every_order(site: &Site, mut make: impl FnMut(&Site) -> Kept) {
    for order in ORDERS {
        make(site).drop_in_order(order);
    }
}

#[case(covers(ADDR_RESOLVED))]
fn addr_resolved_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let (channel, id) = site.id();
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        Kept::next(EventKind::AddrResolved, id, channel, (), ())
    });
}

#[case(covers(ADDR_ERROR))]
fn addr_error_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let (channel, id) = site.id();
        let silent = CmAddr::from((site.silent, 7471));
        id.resolve_addr(None, silent, PATIENCE / 3000).unwrap();
        Kept::next(EventKind::AddrError, id, channel, (), ())
    });
}

#[case(covers(ROUTE_RESOLVED))]
fn route_resolved_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let channel = site.channel();
        let id = site.resolved(&channel, site.v4(7471));
        id.resolve_route(PATIENCE).unwrap();
        Kept::next(EventKind::RouteResolved, id, channel, (), ())
    });
}

/// The event owns the child id, and keeps it alive.
#[case(covers(CONNECT_REQUEST))]
fn connect_request_outlives_its_listener(site: &Site) {
    in_every_order(site, |site| {
        let pending = site.pending_request();
        let Listening { channel, id } = pending.listener;
        let parts: [Box<dyn Any>; 3] = [Box::new(id), Box::new(channel), Box::new(())];
        Kept::of(
            pending.request,
            EventKind::ConnectRequest,
            parts,
            pending.client,
        )
    });
    // Includes the client, once the request is answered.
    in_every_order(site, |site| {
        let mut pending = site.pending_request();
        pending.request.take_child().unwrap().reject(&[]).unwrap();
        let parts: [Box<dyn Any>; 3] = [
            Box::new(pending.listener.id),
            Box::new(pending.listener.channel),
            Box::new(pending.client),
        ];
        Kept::of(pending.request, EventKind::ConnectRequest, parts, ())
    });
}

#[case(needs(Datagrams), covers(CONNECT_RESPONSE))]
fn connect_response_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let pair = site.pending_request().into_pair(site);
        pair.accept(&ConnParam::new());
        let (id, channel, queue_pair) = apart(pair.client);
        Kept::next(
            EventKind::ConnectResponse,
            id,
            channel,
            pair.server,
            queue_pair,
        )
    });
}

/// The queue pair outlives its id, as iWARP requires.
fn apart(side: Side) -> (CmId, EventChannel, impl Any) {
    (side.id, side.channel, side.queue_pair)
}

#[case(covers(ESTABLISHED))]
fn established_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let pair = site.pending_request().into_pair(site);
        pair.accept(&ConnParam::new());
        if site.soft == Soft::Rxe {
            let response = pair.client.expect(EventKind::ConnectResponse);
            let with = pair.client.id.with_queue_pair(&pair.client.queue_pair);
            with.establish(&response).unwrap();
        }
        let (id, channel, queue_pair) = apart(pair.server);
        Kept::next(EventKind::Established, id, channel, pair.client, queue_pair)
    });
}

#[case(covers(REJECTED))]
fn rejected_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let pending = site.pending_request();
        drop(pending.request);
        let (id, channel, queue_pair) = apart(pending.client);
        Kept::next(
            EventKind::Rejected,
            id,
            channel,
            pending.listener,
            queue_pair,
        )
    });
}

#[case(covers(DISCONNECTED))]
fn disconnected_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let pair = site.pair();
        pair.client.disconnect();
        let (id, channel, queue_pair) = apart(pair.server);
        Kept::next(
            EventKind::Disconnected,
            id,
            channel,
            pair.client,
            queue_pair,
        )
    });
}

#[case(waiting, needs(Datagrams), covers(TIMEWAIT_EXIT))]
fn timewait_exit_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let pair = site.pair();
        pair.disconnect_both();
        let (id, channel, queue_pair) = apart(pair.client);
        Kept::next(
            EventKind::TimewaitExit,
            id,
            channel,
            pair.server,
            queue_pair,
        )
    });
}

#[case(needs(Datagrams), covers(MULTICAST_JOIN))]
fn multicast_join_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let channel = site.channel();
        let id = channel.create_id(PortSpace::UDP).unwrap();
        id.bind(site.v4(0)).unwrap();
        let group = ([239, 71, 3, 1], 0);
        let joined = id.join_multicast(group, JoinFlags::FULL_MEMBER).unwrap();
        Kept::next(EventKind::MulticastJoin, id, channel, joined, ())
    });
}

/// A datagram service that does not exist.
#[case(needs(Datagrams), covers(UNREACHABLE))]
fn unreachable_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let channel = site.channel();
        let id = channel.create_id(PortSpace::UDP).unwrap();
        id.resolve_addr(None, site.v4(1), PATIENCE).unwrap();
        expect(&channel, EventKind::AddrResolved);
        id.resolve_route(PATIENCE).unwrap();
        expect(&channel, EventKind::RouteResolved);
        id.connect(UdParam::new()).unwrap();
        Kept::next(EventKind::Unreachable, id, channel, (), ())
    });
}

/// A client, and its connection of TCP at a listener without RDMA.
fn client_of_a_tcp_listener(site: &Site) -> (Side, TcpStream) {
    let listener = TcpListener::bind((site.v4, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let channel = site.channel();
    let id = site.routed(&channel, site.v4(port));
    let queue_pair = site.queue_pair();
    id.with_queue_pair(&queue_pair)
        .connect(ConnParam::new())
        .unwrap();
    let stream = tcp::accept(&listener);
    let client = Side {
        channel,
        id,
        queue_pair,
    };
    (client, stream)
}

/// The peer replies with an unknown revision of MPA. (A reply with an excessive length
/// would do as well, except on Linux 7.3, which copies data beyond it.) Source: RFC
/// 5044 §7.1.
#[case(needs(TcpHandshake), covers(CONNECT_ERROR))]
fn connect_error_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let (client, mut stream) = client_of_a_tcp_listener(site);
        let mut request = [0; 20];
        stream.read_exact(&mut request).unwrap();
        stream
            .write_all(b"MPA ID Rep Frame\x40\xff\x00\x00")
            .unwrap();
        let (id, channel, queue_pair) = apart(client);
        Kept::next(EventKind::ConnectError, id, channel, stream, queue_pair)
    });
}

/// The peer does not answer; the kernel waits for ten seconds, so only one order is
/// tested.
#[case(waiting, needs(TcpHandshake), covers(UNREACHABLE))]
fn unreachable_after_an_unanswered_handshake_outlives_its_id(site: &Site) {
    let (client, stream) = client_of_a_tcp_listener(site);
    let (id, channel, queue_pair) = apart(client);
    let kept = Kept::next(EventKind::Unreachable, id, channel, stream, queue_pair);
    kept.drop_in_order(ORDERS[0]);
}

#[case(needs(WriteCmEvent), covers(USER))]
fn user_event_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let (channel, id) = site.id();
        id.write_event(0, 7147).unwrap();
        Kept::next(EventKind::User, id, channel, (), ())
    });
}
