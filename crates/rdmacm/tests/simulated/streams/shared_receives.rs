//! Streams whose receive requests are shared. On iWARP the option changes nothing.

use std::io::{Read, Write};
use std::thread;

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_sim::Fabric;

use super::{Hosts, SECOND, bytes, small};

fn shared() -> StreamOptions {
    small().shared_receives(24)
}

/// Hosts whose server's streams share their requests.
fn each() -> [Hosts; 2] {
    let names = ["client", "server"];
    [
        Hosts::with(Fabric::roce(names), "rxe0", shared()),
        Hosts::with(Fabric::iwarp(names), "siw0", shared()),
    ]
}

/// So many streams, those of the client with shared requests too.
fn connect(hosts: &Hosts, count: usize) -> Vec<(RdmaStream, RdmaStream)> {
    (0..count).map(|_| hosts.connect_with(shared())).collect()
}

fn carry(from: &RdmaStream, to: &RdmaStream, bytes: &[u8]) {
    thread::scope(|scope| {
        scope.spawn(|| { from }.write_all(bytes).unwrap());
        let mut received = vec![0; bytes.len()];
        { to }.read_exact(&mut received).unwrap();
        assert!(received == bytes);
    });
}

#[test]
fn each_stream_carries_its_own_bytes() {
    for hosts in each() {
        let pairs = connect(&hosts, 4);
        thread::scope(|scope| {
            for (number, (client, server)) in pairs.iter().enumerate() {
                let bytes = bytes(10_000 + number);
                scope.spawn(move || {
                    carry(client, server, &bytes);
                    carry(server, client, &bytes);
                });
            }
        });
    }
}

#[test]
fn streams_of_a_node_share_one_queue() {
    for hosts in each() {
        let client = hosts.fabric.find_host("client").unwrap();
        let queues = || client.verbs_objects().shared_receive_queues;
        assert_eq!(queues(), 0);
        let pairs = connect(&hosts, 3);
        assert_eq!(queues(), usize::from(hosts.device == "rxe0"));
        drop(pairs);
        let closed = hosts.client_node.wait_for_dropped_streams(60 * SECOND);
        closed.unwrap();
        assert_eq!(queues(), 0, "{}", hosts.device);
    }
}

/// Together, the streams send more messages than there are requests.
#[test]
fn peers_that_find_no_request_try_again() {
    for hosts in each() {
        let pairs = connect(&hosts, 8);
        for (client, _) in &pairs {
            for byte in 0..5 {
                { client }.write_all(&[byte]).unwrap();
            }
        }
        for (_, server) in &pairs {
            let mut received = [0; 5];
            { server }.read_exact(&mut received).unwrap();
            assert_eq!(received, [0, 1, 2, 3, 4]);
        }
    }
}

#[test]
fn streams_come_and_go() {
    for hosts in each() {
        let [first, second] = [0, 1].map(|_| connect(&hosts, 2));
        drop(first);
        for (client, server) in &second {
            carry(client, server, &bytes(5000));
        }
    }
}
