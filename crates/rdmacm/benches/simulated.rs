//! The event loop and the message layer, between two simulated hosts: the simulation's own
//! work is part of every number.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark, whose simulated hosts answer everything"
)]

use std::sync::Arc;
use std::thread;

use rdmacm::{CLOSE_DEADLINE, Connection, Connector, Listener, Node};
use rdmacm_sim::{Fabric, Host};

fn main() {
    divan::main();
}

const PORT: u16 = 7471;

fn node(host: &Host) -> Node {
    let channel = host.channel_options().unwrap();
    let options = Node::options().channel(channel);
    options
        .device_source(Arc::new(host.clone()))
        .open()
        .unwrap()
}

fn echo(listener: &Listener) {
    let connection = listener.accept(None).unwrap().accept().unwrap();
    while let Some(message) = connection.receive().unwrap() {
        connection.send(&message).unwrap();
    }
}

/// Measures something on the client of a server that accepts `clients` and echoes messages.
fn with_server(clients: usize, measure: impl FnOnce(&dyn Fn() -> Connection)) {
    let fabric = Fabric::roce(["client", "server"]);
    let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
    let address = (server.address().unwrap(), PORT);
    let listener = Listener::options()
        .with_node(&node(&server))
        .bind(address)
        .unwrap();
    let node = node(&client);
    thread::scope(|scope| {
        scope.spawn(|| (0..clients).for_each(|_| echo(&listener)));
        measure(&|| Connector::new(address).with_node(&node).connect().unwrap());
    });
}

const CONNECTIONS: u32 = 50;

#[divan::bench(sample_count = CONNECTIONS, sample_size = 1)]
fn connect_and_close(bencher: divan::Bencher<'_, '_>) {
    with_server(CONNECTIONS as usize, |connect| {
        bencher.bench_local(|| connect().close(CLOSE_DEADLINE).unwrap());
    });
}

#[divan::bench]
fn round_trip(bencher: divan::Bencher<'_, '_>) {
    with_server(1, |connect| {
        let connection = connect();
        bencher.bench_local(|| {
            connection.send(&[7; 64]).unwrap();
            connection.receive().unwrap()
        });
        connection.close(CLOSE_DEADLINE).unwrap();
    });
}
