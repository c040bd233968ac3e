//! The same on tokio.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use rdmacm::tokio::{Connector, Listener, Node, RdmaListener, RdmaStream};
use rdmacm_sim::{Fabric, Host, VerbsObjects};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{bytes, small};
use crate::hosts::{PORT, channel};
use crate::tasks::{SpawnBlocking, Turns};

/// How long ended streams may take by the machine's clock, whatever is simulated.
const REAL_LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Tasks {
    pub(super) fabric: Fabric,
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) client_node: Node,
    pub(super) server_node: Node,
    pub(super) listener: RdmaListener,
}

impl Tasks {
    /// One after the other: the clock of a fabric stands still until its first use, and that of
    /// the runtime does not.
    pub(super) fn each() -> impl Iterator<Item = Self> {
        let fabrics = [Fabric::roce, Fabric::iwarp];
        let fabrics = fabrics.into_iter().map(|make| make(["client", "server"]));
        fabrics.map(Self::new)
    }

    pub(super) fn new(fabric: Fabric) -> Self {
        let fabric = fabric.seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        let [client_node, server_node] = [&client, &server].map(|host| {
            let executor = Arc::new(SpawnBlocking(Handle::current()));
            let options = Node::options().channel(channel(host)).executor(executor);
            options
                .device_source(Arc::new(host.clone()))
                .open()
                .unwrap()
        });
        let address = (server.address().unwrap(), PORT);
        let listener = Listener::options().with_node(&server_node);
        Self {
            listener: RdmaListener::new(listener.bind(address).unwrap(), small()),
            fabric,
            client,
            server,
            client_node,
            server_node,
        }
    }

    pub(super) fn connector(&self) -> Connector {
        let address = (self.server.address().unwrap(), PORT);
        Connector::new(address).with_node(&self.client_node)
    }

    /// A listener that leaves what to accept to its caller, and a connector to it.
    pub(super) fn listen(&self) -> (Listener, Connector) {
        let address = (self.server.address().unwrap(), PORT + 1);
        let listener = Listener::options().with_node(&self.server_node);
        let connector = Connector::new(address).with_node(&self.client_node);
        (listener.bind(address).unwrap(), connector)
    }

    pub(super) async fn connect(&self) -> (RdmaStream, RdmaStream) {
        let connected = async { self.connector().connect_stream(small()).await.unwrap() };
        let accepted = async { self.listener.accept().await.unwrap().0 };
        tokio::join!(connected, accepted)
    }

    /// Waits until only the listener is left: the executor ends streams that were dropped.
    pub(super) async fn assert_clean(&self) {
        let left = || {
            let objects = [&self.client, &self.server].map(Host::verbs_objects);
            (self.client.id_count(), self.server.id_count(), objects)
        };
        let nothing = (0, 1, [VerbsObjects::default(); 2]);
        let began = Instant::now();
        while left() != nothing {
            assert!(began.elapsed() < REAL_LIMIT, "{:?}", left());
            spawn_blocking(|| thread::sleep(Duration::from_millis(1)))
                .await
                .unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn halves_are_used_by_different_tasks() {
    for tasks in Tasks::each() {
        let (client, server) = tasks.connect().await;
        let echo = tokio::spawn(async move {
            let (mut read, mut write) = server.into_split();
            copy(&mut read, &mut write).await.unwrap();
            read.reunite(write).unwrap()
        });
        let (mut read, mut write) = client.into_split();
        let writing = tokio::spawn(async move { write.write_all(&bytes(20_000)).await });
        let mut received = vec![0; 20_000];
        read.read_exact(&mut received).await.unwrap();
        assert!(received == bytes(20_000));
        writing.await.unwrap().unwrap();
        // The half that writes was dropped, which ends the echo.
        let mut server = echo.await.unwrap();
        server.write_all(b"end").await.unwrap();
        server.shutdown().await.unwrap();
        let mut rest = Vec::new();
        read.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_or_write_loses_nothing() {
    for tasks in Tasks::each() {
        let (mut client, mut server) = tasks.connect().await;
        let pause = Duration::from_millis(5);
        for _ in 0..3 {
            let mut byte = [0];
            assert!(timeout(pause, server.read(&mut byte)).await.is_err());
        }
        let mut written = 0;
        while let Ok(outcome) = timeout(pause, client.write(&bytes(300))).await {
            written += outcome.unwrap();
        }
        let mut received = vec![0; written];
        server.read_exact(&mut received).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_accept_that_is_dropped_loses_no_stream() {
    for tasks in Tasks::each() {
        let client = tokio::spawn(tasks.connector().connect_stream(small()));
        let accepted = loop {
            let accepted = timeout(Duration::from_micros(50), tasks.listener.accept());
            if let Ok(accepted) = accepted.await {
                break accepted;
            }
        };
        let (mut server, _) = accepted.unwrap();
        let mut client = client.await.unwrap().unwrap();
        client.write_all(b"hello").await.unwrap();
        server.read_exact(&mut [0; 5]).await.unwrap();
    }
}

/// A task that reads byte by byte, or looks at what has arrived again and again.
#[tokio::test(start_paused = true)]
async fn a_task_that_never_waits_lets_others_run() {
    const BYTES: usize = 500;
    for tasks in Tasks::each() {
        let (mut client, mut server) = tasks.connect().await;
        client.write_all(&bytes(BYTES)).await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        let turns = Turns::default();
        let other = turns.count();
        for _ in 1..BYTES {
            server.read_exact(&mut [0]).await.unwrap();
        }
        let while_reading = turns.so_far();
        assert!(while_reading > 1, "the other task has run");
        server.write_all(&[0]).await.unwrap();
        let before = turns.so_far();
        for _ in 0..BYTES {
            client.peek(&mut [0]).await.unwrap();
        }
        assert!(turns.so_far() > before + 1, "the other task has run");
        other.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn idle_streams_take_nothing_of_a_tasks_turn() {
    // More than tokio lets a task do in one turn.
    const STREAMS: usize = 150;
    for tasks in Tasks::each() {
        let mut pairs = Vec::new();
        for _ in 0..STREAMS {
            pairs.push(tasks.connect().await);
        }
        let (client, _) = pairs.last_mut().unwrap();
        client.write_all(b"x").await.unwrap();
        let mut polls = 0;
        let readable = poll_fn(|context| {
            polls += 1;
            assert!(polls < 100, "the last stream has had no turn");
            let mut streams = pairs.iter().map(|(_, server)| server);
            let ready = streams.find_map(|server| match server.poll_read_ready(context) {
                Poll::Ready(ready) => Some(ready),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        readable.await.unwrap();
    }
}
