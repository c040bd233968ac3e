//! Connecting to a candidate uses what the lookup found: source, route and connect data.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rdmacm::addrinfo::{
    self, AddrInfo, AddrInfoResolver, Hints, Host, HostQuery, NameError, NameResolver,
};
use rdmacm::core::{CommandNumber, Error, EventChannel, PathData, PathFlags, PortSpace, QpType};
use rdmacm::{Cause, CmConnection, Connector, Listener, Node, Stage};
use rdmacm_tests::{Counting, PATIENCE, Site, Soft, free_port};

use crate::connector::asynchronous::on_one_thread;
use crate::queue_pairs::{AnyQueuePair, QueuePairs};
use rdmacm_tests_macros::case;

fn found(site: &Site, port: u16) -> AddrInfo {
    let hints = Hints::rc().deadline(PATIENCE);
    let node = site.v4.to_string();
    let list = addrinfo::resolve(&*node, &*port.to_string(), &hints).unwrap();
    list.into_iter().next().unwrap()
}

/// Connects and returns the private data that the peer received.
fn connect(
    site: &Site,
    listener: &Listener,
    connector: Connector,
) -> (CmConnection<AnyQueuePair>, Vec<u8>) {
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        let private_data = incoming.private_data().to_vec();
        drop(incoming.accept_with(queue_pairs.clone()).unwrap());
        (client.join().unwrap(), private_data)
    })
}

/// A node that counts commands.
fn counted() -> (Node, Arc<Counting>) {
    let device = Arc::new(Counting::new());
    let channel = EventChannel::options().ucma(device.clone());
    (Node::options().channel(channel).open().unwrap(), device)
}

/// iWARP has no routes.
#[case]
fn a_candidates_route_is_not_resolved_again(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let info = found(site, listener.local_addr().port());
    let route = info.route.as_ref().unwrap().settable().to_vec();
    assert_eq!(route.is_empty(), site.soft == Soft::Siw);
    let (node, device) = counted();
    let connector = Connector::new(&[info]).with_node(&node).deadline(PATIENCE);
    let (client, _) = connect(site, &listener, connector);
    let set = device.of(CommandNumber::SET_OPTION);
    let resolved = device.of(CommandNumber::RESOLVE_ROUTE);
    match site.soft {
        Soft::Rxe => assert_eq!((set, resolved), (1, 0)),
        Soft::Siw => assert_eq!((set, resolved), (0, 1)),
    }
    let used = client.id().path_records().unwrap();
    let used: Vec<_> = used.iter().map(|path| path.record.dgid).collect();
    let known: Vec<_> = route.iter().map(|path| path.record.dgid).collect();
    assert_eq!(used, known);
}

/// One of ibacm's usual paths, which no connection can use.
fn unusable(path: PathData) -> PathData {
    let flags = path.flags.difference(PathFlags::BIDIRECTIONAL);
    PathData { flags, ..path }
}

/// Connects with the found route changed by `change`. Returns how often a route was set
/// and resolved; `None` if there is no route.
fn connect_by(site: &Site, change: fn(PathData) -> Vec<PathData>) -> Option<(usize, usize)> {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let mut info = found(site, listener.local_addr().port());
    let route = info.route.as_mut().unwrap();
    let Some(path) = route.path_records.first().copied() else {
        assert_eq!(site.soft, Soft::Siw);
        return None;
    };
    route.path_records = change(path);
    let (node, device) = counted();
    let connector = Connector::new(&[info]).with_node(&node).deadline(PATIENCE);
    connect(site, &listener, connector);
    let of = |number| device.of(number);
    Some((
        of(CommandNumber::SET_OPTION),
        of(CommandNumber::RESOLVE_ROUTE),
    ))
}

#[case]
fn the_usable_one_of_many_paths_is_used(site: &Site) {
    let seven = |path| [vec![unusable(path); 6], vec![path]].concat();
    let counts = connect_by(site, seven);
    assert!(counts.is_none_or(|counts| counts == (1, 0)), "{counts:?}");
}

#[case]
fn an_unusable_route_is_resolved_again(site: &Site) {
    let counts = connect_by(site, |path| vec![unusable(path)]);
    assert!(counts.is_none_or(|counts| counts == (0, 1)), "{counts:?}");
}

#[case]
fn a_candidate_selects_its_port_space(site: &Site) {
    let listener = Listener::options().port_space(PortSpace::IB);
    let listener: Listener = listener.bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let hints = Hints::new().port_space(PortSpace::IB).qp_type(QpType::RC);
    let hints = hints.deadline(PATIENCE);
    let list = addrinfo::resolve(&*site.v4.to_string(), &*port, &hints).unwrap();
    assert_eq!(list[0].port_space, PortSpace::IB);
    connect(site, &listener, Connector::new(&list).deadline(PATIENCE));
    let named = Connector::new(listener.local_addr()).port_space(PortSpace::IB);
    connect(site, &listener, named.deadline(PATIENCE));
    // iWARP has TCP's ports and no port spaces.
    if site.soft == Soft::Rxe {
        let other = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let error = other.connect_with(QueuePairs::new(site)).unwrap_err();
        assert!(error.is_rejected(), "{error}");
    }
}

#[case]
fn datagram_candidates_are_skipped(site: &Site) {
    let mut info = found(site, free_port());
    info.qp_type = QpType::UD;
    let connector: Connector = Connector::new(&[info]);
    let error = connector.resolve().unwrap_err();
    assert!(matches!(error.cause(), Cause::NoTarget), "{error}");
}

#[case]
fn connect_data_precede_the_private_data(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let mut info = found(site, listener.local_addr().port());
    info.connect_data = b"head ".to_vec();
    let connector = Connector::new(&[info]).deadline(PATIENCE);
    let connector = connector.private_data(b"and body").unwrap();
    let (_, private_data) = connect(site, &listener, connector);
    assert!(
        private_data.starts_with(b"head and body"),
        "{private_data:?}"
    );
    assert!(
        private_data[13..].iter().all(|byte| *byte == 0),
        "{private_data:?}"
    );
}

/// In librdmacm the length wraps.
#[case]
fn connect_data_and_private_data_share_the_capacity(site: &Site) {
    let mut info = found(site, free_port());
    info.connect_data = vec![7; 36];
    for (own, together) in [(251, 36 + 251), (216, 36 + 216)] {
        let connector = Connector::new(std::slice::from_ref(&info)).deadline(PATIENCE);
        let connector = connector.private_data(&vec![9; own]).unwrap();
        let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
        assert_eq!(error.stage(), Stage::Connect, "{error}");
        let Cause::Refused(Error::PrivateDataTooLong { length, .. }) = error.cause() else {
            panic!("{error:?}");
        };
        assert_eq!(*length, together);
    }
}

#[case]
fn a_node_resolves(site: &Site) {
    let node: Node = Node::open().unwrap();
    let hints = Hints::rc().deadline(PATIENCE);
    let list = node.resolve(&*site.v4.to_string(), "7471", &hints).unwrap();
    assert!(list[0].is_reachable(), "{list:?}");
}

#[case]
fn a_node_resolves_asynchronously(site: &Site) {
    on_one_thread().block_on(async {
        let node = rdmacm::tokio::Node::open().unwrap();
        let hints = Hints::rc().deadline(PATIENCE);
        let (v4, v6) = (site.v4.to_string(), site.v6.to_string());
        let (four, six) = tokio::join!(
            node.resolve(&*v4, "7471", &hints),
            node.resolve(&*v6, "7471", &hints)
        );
        assert_eq!(four.unwrap()[0].destination, Some(site.v4(7471)));
        assert_eq!(six.unwrap()[0].destination, Some(site.v6(7471)));
        let nothing = node.resolve(None, None, &hints).await;
        assert_eq!(nothing, Err(addrinfo::Error::NothingToResolve));
    });
}

/// Resolves one host, and services as the system does.
#[derive(Debug)]
struct OneHost(SocketAddr);

impl NameResolver for OneHost {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        match query.name {
            "the-peer" => Ok(Host::from_iter([self.0])),
            _ => Err(NameError::NoName),
        }
    }
}

#[case]
fn a_custom_resolver_is_used(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let addr_info_resolver = AddrInfoResolver::new().name_resolver(OneHost((site.v4, 0).into()));
    let node: Node = Node::options()
        .addr_info_resolver(&addr_info_resolver)
        .open()
        .unwrap();
    let connector = Connector::new(("the-peer", &*port)).with_node(&node);
    let (client, _) = connect(site, &listener, connector.deadline(PATIENCE));
    let peer = client.peer_addr().unwrap();
    assert_eq!(peer, listener.local_addr());
    let error = Connector::new(("somebody-else", &*port)).with_node(&node);
    let error = error.resolve().unwrap_err();
    assert_eq!(error.stage(), Stage::LookUp, "{error}");
    assert!(matches!(error.cause(), Cause::Name(_)), "{error}");
}
