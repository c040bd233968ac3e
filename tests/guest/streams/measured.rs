//! What rstream does without sizes: it measures round trips with 64 bytes inline, and then on a second
//! connection throughput without inline data. That takes minutes in an emulated guest, so a program
//! does a part of it, and rstream all of it in a longer run.

use std::io::{Read as _, Write as _};

use rdmacm::{Connector, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_tests_macros::case;

use super::rsocket_calls::{least_release_without_inline, start};
use super::rstream::{Counter, expect_end};
use super::{accept, for_c_clients, to_c_server};
use crate::c_tools::tool::Tool;
use crate::rdma_core::RdmaCore;

/// Sets of how many messages one is exchanged. For all of them, rstream is the peer.
const PART: &str = "RDMACM_PART";
const SMALL_PART: usize = 100;
const ALL: usize = 1;

/// The sizes of messages, and how many there are in each direction.
const SIZES: [(usize, usize); 4] = [
    (64, 100_000),
    (4096, 10_000),
    (65_536, 1000),
    (1 << 20, 100),
];

#[case(needs(Preloaded, StreamsWithoutInline))]
fn two_connections_are_measured_as_by_rstream(site: &Site) {
    let part = std::env::var(PART).map_or(SMALL_PART, |part| part.parse().unwrap());
    for rdma_core in RdmaCore::preloaded_since(least_release_without_inline(site)) {
        if part == ALL {
            measured_by_rstream(site, rdma_core);
        } else {
            measured_in_part(site, rdma_core, part);
        }
    }
}

fn measured_in_part(site: &Site, rdma_core: RdmaCore, part: usize) {
    let options = StreamOptions::new();
    let (client, listener) = start(site, rdma_core, "measures", &[part], options);
    let message: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let exchange = |mut stream: &RdmaStream, size: usize, count: usize| {
        let mut received = vec![0; size];
        for _ in 0..count {
            stream.read_exact(&mut received).unwrap();
            assert!(received == message[..size]);
        }
        for _ in 0..count {
            stream.write_all(&message[..size]).unwrap();
        }
    };
    for is_one_by_one in [true, false] {
        let stream = accepted(&listener);
        for (size, count) in SIZES {
            exchange(&stream, 16, 1);
            let count = (count / part).max(1);
            if is_one_by_one {
                (0..count).for_each(|_| exchange(&stream, size, 1));
            } else {
                exchange(&stream, size, count);
            }
        }
        expect_end(site, &stream);
    }
    client.finish().assert_success();
}

/// In both roles; on siw, where a server of librdmacm sometimes closes a connection instead of
/// accepting it, as a client.
fn measured_by_rstream(site: &Site, rdma_core: RdmaCore) {
    let (listener, port) = for_c_clients(site, site.v4, StreamOptions::new());
    let client = rstream(site, rdma_core, port, "-s");
    let mut measured = Measured::default();
    for is_one_by_one in [true, false] {
        let stream = accepted(&listener);
        measured.run(&stream, false, is_one_by_one);
        expect_end(site, &stream);
    }
    expect_results(client);
    if site.soft == Soft::Siw {
        return;
    }
    let host = site.v4.into();
    let options = StreamOptions::new();
    let (server, stream) = to_c_server(site, host, &options, |port| {
        let mut server = rstream(site, rdma_core, port, "-b");
        server.wait_for("name");
        server
    });
    let address = stream.peer_addr().unwrap();
    let mut measured = Measured::default();
    measured.run(&stream, true, true);
    expect_end(site, &stream);
    drop(stream);
    let connector = Connector::new(address).deadline(PATIENCE);
    let stream = connector.connect_stream(options).unwrap();
    measured.run(&stream, true, false);
    expect_end(site, &stream);
    expect_results(server);
}

fn rstream(site: &Site, rdma_core: RdmaCore, port: u16, role: &str) -> Tool {
    let (port, host) = (port.to_string(), site.v4.to_string());
    let arguments = ["-T", "b", "-T", "v", "-p", &port, role, &host];
    Tool::start_with(rdma_core, "rstream", &arguments)
}

fn accepted(listener: &RdmaListener) -> RdmaStream {
    let (stream, _) = accept(listener);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// It prints the names of its results, and one for each size and connection.
fn expect_results(tool: Tool) {
    let ended = tool.finish();
    ended.assert_success();
    let printed = ended.printed();
    assert_eq!(printed.len(), 1 + 2 * SIZES.len(), "{printed:?}");
}

/// The bytes of both connections, which rstream numbers as one.
#[derive(Default)]
struct Measured {
    sent: Counter,
    received: Counter,
}

impl Measured {
    fn run(&mut self, stream: &RdmaStream, is_client: bool, is_one_by_one: bool) {
        for (size, count) in SIZES {
            self.exchange(stream, is_client, 16, 1);
            if is_one_by_one {
                (0..count).for_each(|_| self.exchange(stream, is_client, size, 1));
            } else {
                self.exchange(stream, is_client, size, count);
            }
        }
    }

    fn exchange(&mut self, stream: &RdmaStream, is_client: bool, size: usize, count: usize) {
        for sends in [is_client, !is_client] {
            for _ in 0..count {
                if sends {
                    self.sent.send(stream, size);
                } else {
                    self.received.receive(stream, size);
                }
            }
        }
    }
}
