//! Connecting and accepting with blocking calls.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use rdmacm::addrinfo::LocalAddress;
use rdmacm::core::{Error, EventChannel, EventKind, IdHandle, PortSpace, RejectReason};
use rdmacm::{Cause, CmConnection, Connector, Listener, Node, RetryPolicy, Stage};
use rdmacm_test_helpers::WatchedThread;
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};

use crate::link::{Link, run};
use crate::newer_commands;
use crate::queue_pairs::{AnyQueuePair, QueuePairs};
use rdmacm_tests_macros::case;

fn connector(site: &Site, port: u16) -> Connector {
    Connector::new((site.v4.to_string(), port.to_string())).deadline(PATIENCE)
}

/// Both sides of a connection.
struct Pair {
    client: CmConnection<AnyQueuePair>,
    server: CmConnection<AnyQueuePair>,
}

impl Pair {
    fn connect(site: &Site, listener: &Listener, connector: Connector) -> Self {
        let queue_pairs = QueuePairs::new(site);
        thread::scope(|scope| {
            let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
            let incoming = listener.accept(PATIENCE).unwrap();
            let server = incoming.accept_with(queue_pairs.clone()).unwrap();
            let client = client.join().unwrap();
            Self { client, server }
        })
    }

    fn disconnect_both(self) {
        let Self { client, server } = self;
        thread::scope(|scope| {
            let closing = scope.spawn(|| client.close(PATIENCE));
            let end = server.closed(PATIENCE).unwrap();
            assert_eq!(end.kind(), EventKind::Disconnected);
            closing.join().unwrap().unwrap();
        });
    }
}

#[case]
fn a_name_connects_and_disconnects(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let pair = Pair::connect(site, &listener, connector(site, port));
    assert_eq!(pair.client.peer_addr().unwrap(), site.v4(port));
    assert_eq!(pair.server.local_addr().unwrap(), site.v4(port));
    pair.disconnect_both();
}

#[case]
fn real_queue_pairs_connect(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let made = |_: &IdHandle| Ok(site.queue_pair());
    let (client, server) = thread::scope(|scope| {
        let client = scope.spawn(|| connector(site, port).connect_with(made).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        let server = incoming.accept_on(site.queue_pair()).unwrap();
        (client.join().unwrap(), server)
    });
    if site.soft == Soft::Rxe {
        let number = client.queue_pair().number();
        assert_eq!(
            client.peer().unwrap().qp_number,
            server.queue_pair().number()
        );
        assert_ne!(client.peer().unwrap().qp_number, number);
        let state = client.queue_pair().state().unwrap();
        assert_eq!(state, Some(rdmacm_core::QpState::RTS));
    }
    drop(server);
    let end = client.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
}

#[case]
fn a_resolved_peer_connects_with_a_queue_pair_made_for_it(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    let resolved = connector(site, port).resolve().unwrap();
    let device = resolved.id().addresses().unwrap().device.unwrap();
    assert_eq!(device.look_up().unwrap().name, site.device);
    let client = thread::scope(|scope| {
        let client = scope.spawn(|| resolved.connect_on(queue_pairs.one()).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        drop(incoming.accept_on(queue_pairs.one()).unwrap());
        client.join().unwrap()
    });
    assert_eq!(
        client.closed(PATIENCE).unwrap().kind(),
        EventKind::Disconnected
    );
}

#[case]
fn a_rejection_carries_the_peers_private_data(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    let error = thread::scope(|scope| {
        let connector = connector(site, port).private_data(b"who").unwrap();
        let client = scope.spawn(|| connector.connect_with(queue_pairs).unwrap_err());
        let incoming = listener.accept(PATIENCE).unwrap();
        assert!(incoming.private_data().starts_with(b"who"));
        incoming.reject(b"not you").unwrap();
        client.join().unwrap()
    });
    assert_eq!(error.stage(), Stage::Connect);
    assert_eq!(error.device(), Some(site.device));
    assert_eq!(error.address(), Some(site.v4(port)));
    assert!(error.is_rejected() && !error.is_retryable());
    assert!(error.private_data().starts_with(b"not you"));
    let reason = (site.soft == Soft::Rxe).then_some(RejectReason::CONSUMER_DEFINED);
    assert_eq!(error.reject_reason(), reason);
}

#[case]
fn a_missing_listener_refuses(site: &Site) {
    let error = connector(site, free_port())
        .connect_with(QueuePairs::new(site))
        .unwrap_err();
    assert!(error.is_rejected() && error.is_retryable(), "{error}");
    let words = error.to_string();
    let who = format!("connect to {}:", site.v4);
    assert!(words.starts_with(&who), "{words}");
    assert!(words.contains(&format!("via {}", site.device)), "{words}");
}

#[case]
fn a_wildcard_listener_serves_both_families(site: &Site) {
    let listener = Listener::bind("[::]:0").unwrap();
    assert_eq!(listener.ids().count(), 2);
    let port = listener.local_addr().port();
    for ip in site.ips() {
        let connector = Connector::new((ip.to_string(), port.to_string())).deadline(PATIENCE);
        Pair::connect(site, &listener, connector).disconnect_both();
    }
}

#[case]
fn a_listener_of_one_family_leaves_the_other_free(site: &Site) {
    let listener = Listener::options().v6_only().bind("[::]:0").unwrap();
    assert_eq!(listener.ids().count(), 1);
    let port = listener.local_addr().port();
    let error = connector(site, port).connect_with(QueuePairs::new(site));
    assert!(error.unwrap_err().is_rejected());
    let v6 = Connector::new(site.v6(port)).deadline(PATIENCE);
    Pair::connect(site, &listener, v6).disconnect_both();
}

#[case]
fn a_listener_is_stopped_from_another_thread(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let stopper = listener.stop_handle();
    thread::scope(|scope| {
        let (tell, waiter) = std::sync::mpsc::channel();
        let listener = &listener;
        let waiting = scope.spawn(move || {
            tell.send(WatchedThread::current()).unwrap();
            listener.incoming().count()
        });
        waiter.recv().unwrap().wait_until_asleep();
        stopper.stop();
        assert_eq!(waiting.join().unwrap(), 0);
    });
    let error = listener.accept(PATIENCE).unwrap_err();
    assert!(matches!(error.cause(), Cause::Stopped), "{error}");
}

#[case]
fn queued_peers_are_accepted_after_the_stop(site: &Site) {
    let node = Node::open().unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        // Two requests arrive; the second waits in the listener's queue.
        let clients = [(); 2].map(|()| {
            let queue_pairs = queue_pairs.clone();
            scope.spawn(move || connector(site, port).connect_with(queue_pairs))
        });
        let first = listener.accept(PATIENCE).unwrap();
        let second = listener.accept(PATIENCE).unwrap();
        listener.stop();
        drop((first, second));
        assert!(listener.incoming().next().is_none());
        for client in clients {
            assert!(client.join().unwrap().unwrap_err().is_rejected());
        }
    });
}

#[case]
fn peers_beyond_the_queue_are_rejected_at_once(site: &Site) {
    let node = Node::open().unwrap();
    let options = Listener::options().with_node(&node).queue(0);
    let listener = options.bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    thread::scope(|scope| {
        // Any thread that waits on the node reads the listener's requests.
        let reading = scope.spawn(|| listener.accept(PATIENCE).unwrap_err());
        let error = connector(site, port).connect_with(QueuePairs::new(site));
        assert!(error.unwrap_err().is_rejected());
        listener.stop();
        assert!(matches!(reading.join().unwrap().cause(), Cause::Stopped));
    });
}

#[case]
fn threads_share_a_node(site: &Site) {
    const THREADS: usize = 8;
    let node = Node::open().unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        scope.spawn(|| {
            let incoming = (0..THREADS).map(|_| listener.accept(PATIENCE).unwrap());
            let servers: Vec<_> = incoming
                .map(|one| one.accept_with(queue_pairs.clone()).unwrap())
                .collect();
            for server in servers {
                let end = server.closed(PATIENCE).unwrap();
                assert_eq!(end.kind(), EventKind::Disconnected);
            }
        });
        for _ in 0..THREADS {
            scope.spawn(|| {
                let connector = connector(site, port).with_node(&node);
                let client = connector.connect_with(queue_pairs.clone()).unwrap();
                client.close(PATIENCE).unwrap();
            });
        }
    });
}

#[case]
fn the_source_is_chosen_by_address_interface_and_device(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let source = free_port();
    for (connector, from) in [
        (
            connector(site, port).source_address(site.v4(source)),
            Some(source),
        ),
        (connector(site, port).source_interface(site.netdev), None),
        (connector(site, port).source_device(site.device), None),
    ] {
        let pair = Pair::connect(site, &listener, connector);
        let local = pair.client.local_addr().unwrap();
        assert_eq!(local.ip(), Some(site.v4.into()));
        assert!(from.is_none_or(|from| local.port() == from));
        pair.disconnect_both();
    }
}

#[case(alone)]
fn an_interface_has_alternative_names_and_labels(site: &Site) {
    let link = Link::new(site);
    let (netdev, labelled) = (&link.netdev, link.neighbour());
    let alternative = format!("a{netdev}");
    run(&format!(
        "ip link property add dev {netdev} altname {alternative}"
    ));
    run(&format!(
        "ip addr add {labelled}/24 dev {netdev} label {netdev}:1"
    ));
    for name in [netdev, &alternative] {
        let connector = connector(&link.site(site), 7).source_interface(name);
        let source = connector.resolve().unwrap().local_addr().unwrap();
        assert_eq!(source.ip(), link.address.ip(), "{name}");
        let found = LocalAddress::for_interface(name).unwrap();
        assert!(found.iter().any(|one| one.address.ip() == labelled));
    }
}

#[case(alone)]
fn the_source_is_of_the_destinations_subnet(site: &Site) {
    let link = Link::new(site);
    let subnet = [1, 2].map(|last| IpAddr::from([192, 168, 200, last]));
    for address in subnet {
        run(&format!("ip addr add {address}/24 dev {}", link.netdev));
    }
    // The kernel adds their GIDs a little later.
    let channel = EventChannel::open().unwrap();
    let has_gid = |address| {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind((address, 0)).is_ok()
    };
    let until = Instant::now() + PATIENCE;
    while !subnet.into_iter().all(has_gid) {
        assert!(Instant::now() < until);
        thread::yield_now();
    }
    let connector = || Connector::new((subnet[1], 7)).deadline(PATIENCE);
    for connector in [
        connector().source_interface(&link.netdev),
        connector().source_device(&link.device),
    ] {
        let source = connector.resolve().unwrap().local_addr().unwrap();
        assert!(subnet.contains(&source.ip().unwrap()), "{source}");
    }
}

#[case]
fn a_source_on_another_link_is_refused(_: &Site) {
    let on =
        |scope_id| SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7), 7, 0, scope_id);
    let error = Connector::new(SocketAddr::from(on(2)))
        .source_address(on(3))
        .resolve();
    let error = error.unwrap_err();
    assert!(matches!(error.cause(), Cause::OtherLink), "{error}");
}

#[case]
fn an_unknown_source_is_reported(site: &Site) {
    for (connector, step) in [
        (connector(site, 7).source_interface("nowhere0"), Stage::Bind),
        (connector(site, 7).source_device("nothing0"), Stage::Bind),
        // It has an address and no RDMA device.
        (
            connector(site, 7).source_interface("plain0"),
            Stage::ResolveAddress,
        ),
    ] {
        let error = connector.resolve().unwrap_err();
        assert_eq!(error.stage(), step, "{error}");
    }
    let error = connector(site, 7).source_address(site.v6(0)).resolve();
    assert!(matches!(error.unwrap_err().cause(), Cause::NoAddress));
}

#[case]
fn dropping_a_connection_disconnects_the_peer(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let Pair { client, server } = Pair::connect(site, &listener, connector(site, port));
    drop(client);
    let end = server.closed(PATIENCE).unwrap();
    assert_eq!((end.kind(), end.failure()), (EventKind::Disconnected, None));
    server.close(PATIENCE).unwrap();
}

/// The listener starts between two attempts: siw may break a connection that arrives
/// while the listener starts.
#[case]
fn retries_wait_for_the_listener(site: &Site) {
    let port = free_port();
    let queue_pairs = QueuePairs::new(site);
    let once = connector(site, port).connect_with(queue_pairs.clone());
    assert!(once.unwrap_err().is_retryable());
    let attempts = AtomicU32::new(0);
    let (bound, listeners) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let make = |_: &IdHandle| {
            if attempts.fetch_add(1, Ordering::Relaxed) == 2 {
                bound.send(Listener::bind(site.v4(port)).unwrap()).unwrap();
            }
            Ok(queue_pairs.one())
        };
        let connector = connector(site, port).retry(RetryPolicy::until_deadline());
        let client = scope.spawn(move || connector.connect_with(make).unwrap());
        let listener = listeners.recv_timeout(PATIENCE).unwrap();
        let incoming = listener.accept(PATIENCE).unwrap();
        let server = incoming.accept_with(QueuePairs::new(site)).unwrap();
        drop(client.join().unwrap());
        server.closed(PATIENCE).unwrap();
    });
    assert_eq!(attempts.into_inner(), 3);
    let policy = RetryPolicy::attempts(3);
    let error = connector(site, free_port())
        .retry(policy)
        .connect_with(QueuePairs::new(site))
        .unwrap_err();
    assert_eq!(error.attempts(), 3);
}

#[case]
fn a_text_that_is_no_address_is_refused(site: &Site) {
    for text in ["", "nowhere", "10.1.0.7", "[::1]", "10.1.0.7:70000"] {
        let error = Listener::bind(text).unwrap_err();
        assert!(matches!(error.cause(), Cause::InvalidAddress), "{text}");
    }
    let address = format!("{}:0", site.v4);
    assert_ne!(Listener::bind(&*address).unwrap().local_addr().port(), 0);
}

#[case]
fn user_events_do_not_end_an_attempt(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let queue_pairs = QueuePairs::new(site);
    let resolved = connector(site, port).resolve().unwrap();
    let written = resolved.id().write_event(-1, 7);
    match written {
        Ok(()) => assert!(newer_commands::is_new()),
        Err(Error::Unsupported { .. }) => assert!(!newer_commands::is_new()),
        Err(other) => panic!("{other}"),
    }
    thread::scope(|scope| {
        let client = scope.spawn(|| resolved.connect_on(queue_pairs.one()).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        drop(incoming.accept_on(queue_pairs.one()).unwrap());
        drop(client.join().unwrap());
    });
}

#[case]
fn the_close_reason_can_be_queried_again(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let Pair { client, server } = Pair::connect(site, &listener, connector(site, port));
    thread::scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| server.closed(PATIENCE).unwrap()));
        drop(client);
        let [one, other] = waiting.map(|one| one.join().unwrap());
        assert_eq!(one, other);
    });
    assert_eq!(server.closed(PATIENCE).unwrap().failure(), None);
}
