//! Connections that carry messages, between simulated hosts.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rdmacm::core::AccessFlags;
use rdmacm::{Connection, Connector, Listener, MessageOptions, Node, NodeOptions};
use rdmacm_sim::{Fabric, Host, VerbsObjects};

use crate::hosts::{PORT, channel};

mod abandoned_polls;
mod backpressure;
mod cancellation;
mod closing;
mod commands;
mod exchange;
mod forked;
mod iwarp;
mod keep_alive;
mod memory;
mod random;
mod slow_commands;
mod tasks;
mod transfers;
mod waiting;
mod work_requests;

const SECOND: Duration = Duration::from_secs(1);
/// What a peer may do with memory.
const ALL: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_WRITE);
/// How long a test may take by the machine's clock, whatever it simulates.
const REAL_LIMIT: Duration = Duration::from_secs(20);

/// Options of a node that opens a simulated host's devices.
fn options(host: &Host) -> NodeOptions {
    let options = Node::options().channel(channel(host));
    options.device_source(Arc::new(host.clone()))
}

/// A node of a simulated host.
fn node(host: &Host) -> Node {
    options(host).open().unwrap()
}

/// Two hosts, of which the second listens.
struct Hosts {
    fabric: Fabric,
    client: Host,
    server: Host,
    client_node: Node,
    listener: Listener,
    began: Instant,
}

impl Hosts {
    /// Hosts with RoCE devices, and hosts with iWARP devices.
    fn each() -> [Self; 2] {
        [Self::roce(), Self::iwarp()]
    }

    fn roce() -> Self {
        Self::new(Fabric::roce(["client", "server", "other"]))
    }

    fn iwarp() -> Self {
        Self::new(Fabric::iwarp(["client", "server", "other"]))
    }

    fn new(fabric: Fabric) -> Self {
        let fabric = fabric.seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        let [client_node, server_node] = [&client, &server].map(node);
        let address = (server.address().unwrap(), PORT);
        let options = Listener::options().with_node(&server_node);
        Self {
            listener: options.bind(address).unwrap(),
            fabric,
            client,
            server,
            client_node,
            began: Instant::now(),
        }
    }

    fn connector(&self) -> Connector {
        let address = (self.server.address().unwrap(), PORT);
        Connector::new(address).with_node(&self.client_node)
    }

    /// Two connected ends: the client's and the server's.
    fn connect(&self) -> (Connection, Connection) {
        self.connect_with(MessageOptions::new(), MessageOptions::new())
    }

    /// The same with options for the client and for the server.
    fn connect_with(
        &self,
        client: MessageOptions,
        server: MessageOptions,
    ) -> (Connection, Connection) {
        thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let incoming = self.listener.accept(None).unwrap();
                incoming.accept_messages(server).unwrap()
            });
            let connection = self.connector().connect_messages(client).unwrap();
            (connection, accepting.join().unwrap())
        })
    }

    /// Waits until a host has only these ids and no object of a device: what was cancelled
    /// may be destroyed by another thread.
    #[track_caller]
    fn assert_clean(&self) {
        let left = || {
            let objects = [&self.client, &self.server].map(Host::verbs_objects);
            (self.client.id_count(), self.server.id_count(), objects)
        };
        // The listener is left.
        let nothing = (0, 1, [VerbsObjects::default(); 2]);
        while left() != nothing {
            assert!(self.began.elapsed() < REAL_LIMIT, "{:?}", left());
            thread::sleep(Duration::from_millis(1));
        }
    }
}
