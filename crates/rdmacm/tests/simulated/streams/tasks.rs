//! The same on tokio.

use std::sync::Arc;
use std::time::Duration;

use rdmacm::tokio::{Connector, Listener, Node, RdmaListener, RdmaStream};
use rdmacm_sim::{Fabric, Host};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{bytes, small};
use crate::hosts::{PORT, channel};
use crate::tasks::SpawnBlocking;

pub(super) struct Tasks {
    server: Host,
    client_node: Node,
    listener: RdmaListener,
}

impl Tasks {
    fn each() -> [Self; 2] {
        let names = ["client", "server"];
        [Fabric::roce(names), Fabric::iwarp(names)].map(Self::new)
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
            server,
            client_node,
        }
    }

    pub(super) async fn connect(&self) -> (RdmaStream, RdmaStream) {
        let address = (self.server.address().unwrap(), PORT);
        let connector = Connector::new(address).with_node(&self.client_node);
        let connected = async { connector.connect_stream(small()).await.unwrap() };
        let accepted = async { self.listener.accept().await.unwrap().0 };
        tokio::join!(connected, accepted)
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
        let address = (tasks.server.address().unwrap(), PORT);
        let connector = Connector::new(address).with_node(&tasks.client_node);
        let client = tokio::spawn(connector.connect_stream(small()));
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
