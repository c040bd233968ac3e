//! The number of kernel commands for one connection.

use std::sync::Arc;

use rdmacm::{Connector, Listener, Node};
use rdmacm_core::{
    AddressAbi, CmAddr, CommandNumber, ConnParam, EventChannel, EventKind, PortSpace,
};
use rdmacm_tests::{Counting, Listening, PATIENCE, Pair, PendingRequest, Side, Site, Soft};

use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// From creating the id to destroying it: `CREATE_ID`, `RESOLVE_ADDR`, `RESOLVE_ROUTE`,
/// `CONNECT`, on RoCE `ACCEPT` to establish, `DISCONNECT`, `DESTROY_ID`, and one read
/// for each of four events, and on RoCE perhaps a fifth.
fn most_active(site: &Site) -> usize {
    match site.soft {
        Soft::Rxe => 12,
        Soft::Siw => 11,
    }
}

/// From the request to destroying its id: `ACCEPT`, `DISCONNECT`, `DESTROY_ID`, and one
/// read for each of three events, and on RoCE perhaps a fourth.
const PASSIVE: usize = 7;

/// For a host that has not answered of late, on RoCE: `QUERY`, `CREATE_ID`, `RESOLVE_ADDR`,
/// `DESTROY_ID`, and one read.
const LOOKUP: usize = 5;

/// Reads of the crate `rdmacm`, which reads before it waits and until no event is left,
/// and wakes waiters when a blocking task returns.
const LOOKS: usize = 4;

/// The counters.
#[derive(Clone, Copy, Default)]
struct Count {
    commands: usize,
    attributes: usize,
    reads: usize,
    empty_reads: usize,
}

impl Count {
    fn of(device: &Counting) -> Self {
        Self {
            commands: device.commands(),
            attributes: device.of(CommandNumber::INIT_QP_ATTR),
            reads: device.of(CommandNumber::GET_EVENT),
            empty_reads: device.empty_reads(),
        }
    }

    /// The average number of reads for each event.
    fn assert_at_most(self, most: usize, looks: usize, device: &Counting) {
        let now = Self::of(device);
        let empty_reads = now.empty_reads - self.empty_reads;
        let attributes = now.attributes - self.attributes;
        let commands = now.commands - self.commands - attributes - empty_reads;
        assert!(commands <= most, "{commands} commands: {device:?}");
        let events = now.reads - self.reads - empty_reads;
        assert!(
            empty_reads <= looks * events,
            "{empty_reads} reads found nothing, {events} an event"
        );
        // INIT before posting receive requests, then INIT again, RTR and RTS.
        assert!(attributes <= 4, "{attributes} questions for attributes");
    }
}

#[case]
fn connecting_and_accepting(site: &Site) {
    let [ours, theirs] = [(); 2].map(|()| Arc::new(Counting::new()));
    let listener = Listening::on(site.channel_on(&theirs), site, PortSpace::TCP);
    // Queried once and cached.
    let _ = listener.address();
    let [active, passive] = [&ours, &theirs].map(|device| Count::of(device));
    let client = site.side_on(site.channel_on(&ours), &listener);
    let pending = PendingRequest::new(client, listener, &ConnParam::new());
    let Listening { channel, id } = pending.listener;
    let server = Side {
        channel,
        id: pending.request.into_child().unwrap(),
        queue_pair: site.queue_pair(),
    };
    let pair = Pair {
        server,
        client: pending.client,
    };
    pair.accept(&ConnParam::new());
    pair.establish(site);
    pair.disconnect_both();
    drop(pair);
    active.assert_at_most(most_active(site), 1, &ours);
    passive.assert_at_most(PASSIVE, 1, &theirs);
    drop(id);
}

#[case]
fn blocking_connect_and_accept(site: &Site) {
    let [ours, theirs] = [(); 2].map(|()| Arc::new(Counting::new()));
    let [client_node, server_node] = [&ours, &theirs].map(|device| {
        let device: Arc<Counting> = Arc::clone(device);
        let channel = EventChannel::options().ucma(device);
        let channel = channel.address_abi(AddressAbi::AnyFamily);
        Node::options().channel(channel).open().unwrap()
    });
    let listener = Listener::options().with_node(&server_node);
    let listener = listener.bind(site.v4(0)).unwrap();
    let address = site.v4(listener.local_addr().port());
    let lookup = match site.soft {
        Soft::Rxe => LOOKUP,
        Soft::Siw => 0,
    };
    for most in [PASSIVE + lookup, PASSIVE] {
        // Another thread destroys the ids of iWARP.
        while ours.of(CommandNumber::DESTROY_ID) < ours.of(CommandNumber::CREATE_ID) {
            std::thread::yield_now();
        }
        let [active, passive] = [&ours, &theirs].map(|device| Count::of(device));
        connect_and_accept(site, &client_node, &listener, address);
        active.assert_at_most(most_active(site), LOOKS, &ours);
        passive.assert_at_most(most, LOOKS, &theirs);
    }
}

fn connect_and_accept(site: &Site, client_node: &Node, listener: &Listener, address: CmAddr) {
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connector = Connector::new(address)
                .with_node(client_node)
                .deadline(PATIENCE);
            let client = connector.connect_with(QueuePairs::new(site)).unwrap();
            client.close(PATIENCE).unwrap();
        });
        let incoming = listener.accept(PATIENCE).unwrap();
        let server = incoming.accept_on(site.queue_pair()).unwrap();
        let end = server.closed(PATIENCE).unwrap();
        assert_eq!(end.kind(), EventKind::Disconnected);
        drop(server);
        client.join().unwrap();
    });
}
