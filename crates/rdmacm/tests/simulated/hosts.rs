//! Two hosts with a device of the same kind each, and threads on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdmacm::core::{ChannelOptions, Deadline, EventChannel, Transport};
use rdmacm::{CmConnection, Connector, Listener, Node, StopHandle};
use rdmacm_sim::{Adapter, Fabric, Host};

use crate::queue_pair::{NumberedQp, QueuePairs};

pub(crate) const PORT: u16 = 7471;
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// How long a test may take by the machine's clock, whatever it simulates.
const REAL_LIMIT: Duration = Duration::from_secs(20);

pub(crate) type Connection = CmConnection<NumberedQp>;

/// A server and a client with two devices each: `rxe0`, and `rxe1`, which has an IPv6 address too.
pub(crate) fn with_two_devices() -> [Host; 2] {
    let fabric = Fabric::new();
    [7, 1].map(|last| {
        let one = Adapter::roce("rxe0").address([10, 1, 0, last]);
        let other = Adapter::roce("rxe1").address([10, 1, 0, last + 1]);
        fabric.host([one, other.address([0xfd71, 0, 0, 0, 0, 0, 0, last.into()])])
    })
}

pub(crate) struct Hosts {
    pub(crate) fabric: Fabric,
    pub(crate) client: Host,
    pub(crate) server: Host,
    pub(crate) transport: Transport,
    /// The queue pairs of the client, and those of the server.
    pub(crate) client_pairs: QueuePairs,
    pub(crate) server_pairs: QueuePairs,
    began: Instant,
}

impl Hosts {
    pub(crate) fn roce() -> Self {
        let fabric = Fabric::roce(["client", "server", "other"]);
        Self::new(fabric, Transport::RoCE)
    }

    pub(crate) fn iwarp() -> Self {
        let fabric = Fabric::iwarp(["client", "server", "other"]);
        Self::new(fabric, Transport::IWarp)
    }

    pub(crate) fn each() -> [Self; 2] {
        [Self::roce(), Self::iwarp()]
    }

    pub(crate) fn new(fabric: Fabric, transport: Transport) -> Self {
        fabric.set_idle_time(Duration::from_millis(100));
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        Self {
            fabric,
            client_pairs: QueuePairs::new(transport).on(&client),
            server_pairs: QueuePairs::new(transport).on(&server),
            client,
            server,
            transport,
            began: Instant::now(),
        }
    }

    pub(crate) fn is_iwarp(&self) -> bool {
        self.transport == Transport::IWarp
    }

    pub(crate) fn device(&self) -> &'static str {
        if self.is_iwarp() { "siw0" } else { "rxe0" }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (self.server.address().unwrap(), PORT).into()
    }

    pub(crate) fn connector(&self, node: &Node) -> Connector {
        Connector::new(self.address()).with_node(node)
    }

    pub(crate) fn listen(&self, node: &Node) -> Listener {
        let options = Listener::options().with_node(node);
        options.bind(self.address()).unwrap()
    }

    /// A connection, and the server's side of it.
    pub(crate) fn connect(&self, client: &Node, listener: &Listener) -> [Connection; 2] {
        thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let incoming = listener.accept(60 * SECOND).unwrap();
                incoming.accept_with(&self.server_pairs).unwrap()
            });
            let connection = self.connector(client).connect_with(&self.client_pairs);
            [connection.unwrap(), accepted.join().unwrap()]
        })
    }

    /// Waits until the client has no id and no queue pair: what was cancelled during a
    /// handshake of iWARP is destroyed by another thread.
    #[track_caller]
    pub(crate) fn assert_client_is_clean(&self) {
        self.assert_left(&self.client, 0, &self.client_pairs, 0);
    }

    #[track_caller]
    pub(crate) fn assert_server_is_clean(&self) {
        self.assert_left(&self.server, 0, &self.server_pairs, 0);
    }

    #[track_caller]
    pub(crate) fn assert_left(&self, host: &Host, ids: usize, pairs: &QueuePairs, live: usize) {
        let left = || (host.id_count(), pairs.live());
        while left() != (ids, live) {
            let elapsed = self.began.elapsed();
            assert!(elapsed < REAL_LIMIT, "{:?}: {:?}", self.transport, left());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if !thread::panicking() {
            let elapsed = self.began.elapsed();
            assert!(elapsed < REAL_LIMIT, "{elapsed:?}");
        }
    }
}

pub(crate) fn channel(host: &Host) -> ChannelOptions {
    let options = EventChannel::options().ucma(host.open().unwrap());
    options.devices(Arc::new(host.clone()))
}

pub(crate) fn node(host: &Host) -> Node {
    Node::options().channel(channel(host)).open().unwrap()
}

/// A thread that accepts every request, and keeps the connections.
pub(crate) struct Server {
    stop: StopHandle,
    thread: JoinHandle<Vec<Connection>>,
}

impl Server {
    pub(crate) fn start(hosts: &Hosts) -> Self {
        Self::start_on(&hosts.server, hosts.server_pairs.clone())
    }

    pub(crate) fn start_on(host: &Host, pairs: QueuePairs) -> Self {
        let options = Listener::options().with_node(&node(host));
        let listener = options.bind((host.address().unwrap(), PORT)).unwrap();
        let stop = listener.stop_handle();
        let thread = thread::spawn(move || {
            let incoming = listener.incoming();
            let accepted = incoming.map(|next| {
                let next = next?.deadline(Deadline::Never);
                next.accept_with(&pairs)
            });
            accepted.filter_map(Result::ok).collect()
        });
        Self { stop, thread }
    }

    /// Stops listening, and returns the connections that were accepted.
    pub(crate) fn stop(self) -> Vec<Connection> {
        self.stop.stop();
        self.thread.join().unwrap()
    }
}

#[track_caller]
pub(crate) fn assert_text(error: &impl ToString, expected: &str) {
    let text = error.to_string();
    assert!(text.starts_with(expected), "{text}");
}
