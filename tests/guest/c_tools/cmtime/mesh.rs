//! cmtime since rdma-core 61: several instances connect to each other in rounds, first
//! a few connections, then all, then, between two instances, all without queue pairs of
//! the tool's, with invented numbers.
//!
//! siw looks the numbers up, so there this side is two of three instances.

use std::net::{SocketAddrV4, TcpListener};

use rdmacm::{CmConnection, Listener, Node};
use rdmacm_core::{ConnInfo, ConnParam, EventKind};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};

use super::control::{ADDRESS, Barrier, Control, Peer};
use crate::c_tools::our_side::End;
use crate::c_tools::tool::{Ended, Tool};
use crate::c_tools::{
    ASKED, CONNECTIONS, Depths, REQUEST_ROOM, check_established, check_no_private_data,
    check_request, connect_to,
};
use crate::rdma_core::RdmaCore;
use rdmacm_tests_macros::case;

pub(crate) const WITHOUT: &str = "the newest rdma-core was not built, or has no such cmtime";

/// cmtime fails on siw with more connections than this in one process.
const ON_SIW: usize = 50;
/// The first of the numbers that it invents, as server and as client: the kernel treats
/// a number in use as a stale connection.
const OF_SERVER: u32 = 0x71_0000;
const OF_CLIENT: u32 = 0x72_0000;
/// Its connection parameters: siw answers at least as many concurrent reads as it is
/// asked to.
fn agreed(site: &Site) -> Depths {
    match site.soft {
        Soft::Rxe => (1, 1),
        Soft::Siw => (1, ASKED.1),
    }
}

/// Whether the newest cmtime is of this kind.
pub(crate) fn is_there() -> bool {
    super::usage(RdmaCore::Newest).is_some_and(|usage| usage.contains("controller_address"))
}

/// A round, and its number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    connections: usize,
    real_queue_pairs: bool,
}

/// The test's form on a device.
struct Plan {
    /// The number of instances of this side.
    ours: usize,
    rounds: Vec<Round>,
}

impl Plan {
    fn new(site: &Site) -> Self {
        let (ours, all) = match site.soft {
            Soft::Rxe => (1, CONNECTIONS),
            Soft::Siw => (2, ON_SIW),
        };
        let round = |connections, real_queue_pairs| Round {
            connections,
            real_queue_pairs,
        };
        let mut rounds = vec![round(ours, true), round(all, true)];
        if ours == 1 {
            rounds.push(round(all, false));
        }
        Self { ours, rounds }
    }

    /// The tool's command line.
    fn start(&self, site: &Site, port: u16, first_number: u32, more: &[&str]) -> Tool {
        let each = self.rounds[1].connections / self.ours;
        let (address, control) = (site.v4.to_string(), ADDRESS.to_string());
        let (port, each) = (port.to_string(), each.to_string());
        let instances = (self.ours + 1).to_string();
        let first_number = first_number.to_string();
        let mut arguments = vec!["-b", &address, "-C", &control, "-p", &port];
        arguments.extend(["-c", &each, "-P", &instances, "-q", &first_number]);
        arguments.extend(more);
        Tool::start_of(RdmaCore::Newest, "cmtime", &arguments)
    }

    /// Its output except the measurements: a title for each round, with steps below.
    fn assert_printed(&self, ended: &Ended, first: &[&str], verb: &str, steps: &[&str]) {
        ended.assert_success();
        let is_expected = |output: &&String| {
            let title = [first[0], first[first.len() - 1], verb];
            output.starts_with('\t') || title.iter().any(|title| output.starts_with(title))
        };
        let output: Vec<_> = ended
            .printed()
            .iter()
            .filter(is_expected)
            .cloned()
            .collect();
        let mut expected: Vec<String> = first.iter().map(|line| (*line).to_owned()).collect();
        for (at, round) in self.rounds.iter().enumerate() {
            let count = round.connections;
            match (at, round.real_queue_pairs) {
                (0, _) => {}
                (_, true) => expected.push(format!("{verb} ({count}) QPs test")),
                (_, false) => expected.push(format!("{verb} ({count}) test - no QPs")),
            }
            // Once there is a device to create them on.
            let steps = steps.iter().filter(|step| at == 0 || **step != ALLOCATING);
            expected.extend(steps.map(|step| (*step).to_owned()));
        }
        assert_eq!(output, expected);
    }
}

const ALLOCATING: &str = "\tAllocating verbs resources";

/// The parameters of the tool's connections of a round. Their numbers count up and
/// arrive in any order, because the kernel processes several connections at the same
/// time.
fn check_numbers(round: Round, first: u32, mut infos: Vec<ConnInfo>) {
    if !round.real_queue_pairs {
        infos.sort_by_key(|info| info.qp_number);
        let numbers = infos.iter().map(|info| info.qp_number);
        assert!(numbers.eq((first..).take(round.connections)), "{infos:?}");
    }
}

/// The tool is the root.
#[case(needs(NewestCmtime))]
fn the_newest_server_takes_a_hundred_connections(site: &Site) {
    let plan = Plan::new(site);
    let port = free_port();
    let server = plan.start(site, port, OF_SERVER, &["-L"]);
    let (mut control, address) = Control::of_leaves(port, plan.ours);
    assert_eq!(*address.ip(), site.v4);
    let node = Node::open().unwrap();
    for round in &plan.rounds {
        control.wait_at(Barrier::Begin);
        control.wait_at(Barrier::Prepared);
        let connect = |_| {
            let connection = connect_to(site, &node, address.into());
            check_established(site, &connection, agreed(site));
            connection
        };
        let connections: Vec<_> = (0..round.connections).map(connect).collect();
        let infos = connections.iter().map(|one| one.peer().unwrap());
        check_numbers(*round, OF_SERVER, infos.collect());
        control.wait_at(Barrier::Connected);
        for connection in connections {
            connection.close(PATIENCE).unwrap();
        }
        control.wait_at(Barrier::Disconnected);
    }
    let first = ["Running as OOB root", "Server warmup"];
    let steps = ["\tAccepting", ALLOCATING, "\tDisconnecting"];
    plan.assert_printed(&server.finish(), &first, "Accept", &steps);
}

/// The tool is a leaf.
#[case(needs(NewestCmtime))]
fn the_newest_client_makes_a_hundred_connections(site: &Site) {
    let plan = Plan::new(site);
    let listen = |_| Listener::bind(site.v4(0)).unwrap();
    let listeners: Vec<_> = (0..plan.ours).map(listen).collect();
    let ours = listeners.iter().map(|listener| {
        let port = listener.local_addr().port();
        Peer::listens(SocketAddrV4::new(site.v4, port))
    });
    let root = TcpListener::bind((ADDRESS, 0)).unwrap();
    let client = plan.start(site, root.local_addr().unwrap().port(), OF_CLIENT, &[]);
    let mut control = Control::of_root(&root, &ours.collect::<Vec<_>>());
    for round in &plan.rounds {
        control.wait_at(Barrier::Begin);
        control.wait_at(Barrier::Prepared);
        // It connects to each instance in turn.
        let listeners = listeners.iter().cycle().take(round.connections);
        let (infos, connections): (Vec<_>, Vec<_>) =
            listeners.map(|listener| accept(site, listener)).unzip();
        check_numbers(*round, OF_CLIENT, infos);
        control.wait_at(Barrier::Connected);
        for connection in connections {
            let end = connection.closed(PATIENCE).unwrap();
            assert_eq!(end.kind(), EventKind::Disconnected);
            connection.close(PATIENCE).unwrap();
        }
        control.wait_at(Barrier::Disconnected);
    }
    let steps = [
        "\tCreating IDs",
        "\tBinding addresses",
        "\tResolving addresses",
        "\tResolving routes",
        "\tCreating QPs",
        ALLOCATING,
        "\tModify QPs to INIT",
        "\tConnecting",
        "\tDisconnecting",
        "\tDestroying QPs",
        "\tDestroying IDs",
    ];
    plan.assert_printed(&client.finish(), &["Client warmup"], "Connect", &steps);
}

/// Accepts; returns the client's parameters too.
fn accept(site: &Site, listener: &Listener) -> (ConnInfo, CmConnection<End>) {
    let incoming = listener.accept(PATIENCE).unwrap();
    let asked = incoming.peer().unwrap();
    check_request(site, &asked, 0, 0);
    check_no_private_data(site, incoming.private_data(), REQUEST_ROOM);
    let answer = ConnParam::new().private_data(b"welcome").unwrap();
    let connection = incoming.param(answer).accept_on(End::new(site)).unwrap();
    connection.queue_pair().check_connected_to(asked.qp_number);
    (asked, connection)
}
