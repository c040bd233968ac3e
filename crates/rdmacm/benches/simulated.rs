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

/// Serves one client after the other until the listener is stopped.
fn echo(listener: &Listener) {
    while let Ok(incoming) = listener.accept(None) {
        let connection = incoming.accept().unwrap();
        while let Some(message) = connection.receive().unwrap() {
            connection.send(&message).unwrap();
        }
    }
}

/// Measures something on the client of a server that echoes messages.
fn with_server(measure: impl FnOnce(&dyn Fn() -> Connection)) {
    let fabric = Fabric::roce(["client", "server"]);
    let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
    let address = (server.address().unwrap(), PORT);
    let listener = Listener::options()
        .with_node(&node(&server))
        .bind(address)
        .unwrap();
    let node = node(&client);
    thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        measure(&|| Connector::new(address).with_node(&node).connect().unwrap());
        listener.stop();
    });
}

#[divan::bench(sample_count = 50, sample_size = 1)]
fn connect_and_close(bencher: divan::Bencher<'_, '_>) {
    with_server(|connect| {
        bencher.bench_local(|| connect().close(CLOSE_DEADLINE).unwrap());
    });
}

#[divan::bench]
fn round_trip(bencher: divan::Bencher<'_, '_>) {
    with_server(|connect| {
        let connection = connect();
        bencher.bench_local(|| {
            connection.send(&[7; 64]).unwrap();
            connection.receive().unwrap()
        });
        connection.close(CLOSE_DEADLINE).unwrap();
    });
}
