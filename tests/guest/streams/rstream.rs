//! rdma-core's rstream as the peer, in both roles. It is judged by what it prints: it reports
//! success in its exit status also without having received everything.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};
use rdmacm_tests_macros::case;

use super::{accept, for_c_clients, to_c_server};
use crate::c_tools::listening::wait_until_its_socket_listens;
use crate::c_tools::tool::{Ended, Tool};
use crate::command::cat;
use crate::packet_delay::hold_back_first_messages;
use crate::rdma_core::RdmaCore;

/// A test of rstream: as often as `iterations`, the client sends `count` messages of `size`
/// bytes, and then the server does.
#[derive(Clone, Copy)]
pub(super) struct Test {
    tool: &'static str,
    pub(super) size: usize,
    pub(super) count: usize,
    pub(super) iterations: usize,
    is_nonblocking: bool,
    is_over_ipv6: bool,
    /// More arguments.
    more: &'static [&'static str],
}

impl Test {
    pub(super) const fn new(size: usize, count: usize, iterations: usize) -> Self {
        Self {
            tool: "rstream",
            size,
            count,
            iterations,
            is_nonblocking: false,
            is_over_ipv6: false,
            more: &[],
        }
    }

    /// With a tool that takes the same arguments.
    pub(super) const fn of_tool(mut self, tool: &'static str) -> Self {
        self.tool = tool;
        self
    }

    /// The tool's calls do not wait: it makes them again and again, or polls without a timeout.
    const fn nonblocking(mut self) -> Self {
        self.is_nonblocking = true;
        self
    }

    pub(super) const fn over_ipv6(mut self) -> Self {
        self.is_over_ipv6 = true;
        self
    }

    pub(super) const fn with(mut self, more: &'static [&'static str]) -> Self {
        self.more = more;
        self
    }

    fn host(self, site: &Site) -> IpAddr {
        if self.is_over_ipv6 {
            site.v6.into()
        } else {
            site.v4.into()
        }
    }

    /// Starts the tool, which verifies bytes, and mostly waits for events rather than spins.
    pub(super) fn start(self, rdma_core: RdmaCore, port: u16, role: &[&str]) -> Tool {
        let numbers = [port as usize, self.size, self.count, self.iterations];
        let [port, size, count, iterations] = numbers.map(|number| number.to_string());
        let mode = if self.is_nonblocking { "n" } else { "b" };
        let mut arguments = vec!["-T", mode, "-T", "v", "-p", &port];
        arguments.extend(["-S", &size, "-C", &count, "-I", &iterations]);
        arguments.extend(self.more.iter().chain(role));
        Tool::start_with(rdma_core, self.tool, &arguments)
    }

    /// What rstream's peer does.
    pub(super) fn run(self, stream: &RdmaStream, is_client: bool) {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut sent = Counter::default();
        let mut received = Counter::default();
        let mut exchange = |bytes| {
            if is_client {
                sent.send(stream, bytes);
                received.receive(stream, bytes);
            } else {
                received.receive(stream, bytes);
                sent.send(stream, bytes);
            }
        };
        exchange(16);
        for _ in 0..self.iterations {
            exchange(self.count * self.size);
        }
    }

    /// Checks that rstream printed its result, and nothing else.
    pub(super) fn check(ended: &Ended) {
        ended.assert_success();
        let printed = ended.printed();
        let results = |line: &&String| line.starts_with("custom");
        assert_eq!(printed.iter().filter(results).count(), 1, "{printed:?}");
        assert_eq!(printed.len(), 2, "{printed:?}");
    }

    fn as_client(self, site: &Site, rdma_core: RdmaCore, options: &StreamOptions) {
        let (server, stream) = self.connected(site, rdma_core, options);
        self.run(&stream, true);
        expect_end(site, &stream);
        drop(stream);
        Self::check(&server.finish());
    }

    /// rstream as a server, and a stream to it.
    pub(super) fn connected(
        self,
        site: &Site,
        rdma_core: RdmaCore,
        options: &StreamOptions,
    ) -> (Tool, RdmaStream) {
        let host = self.host(site);
        to_c_server(site, host, options, |port| {
            let mut server = self.start(rdma_core, port, &["-b", &host.to_string()]);
            // It listens before it prints the names of its results.
            server.wait_for("name");
            server
        })
    }

    /// How many bytes it sends in each direction.
    fn bytes(self) -> usize {
        16 + self.iterations * self.count * self.size
    }

    fn as_server(self, site: &Site, rdma_core: RdmaCore, options: &StreamOptions) {
        self.as_server_for(site, rdma_core, options, &[]);
    }

    /// A server whose client has more arguments. Returns the client's address.
    pub(super) fn as_server_for(
        self,
        site: &Site,
        rdma_core: RdmaCore,
        options: &StreamOptions,
        more: &[&str],
    ) -> IpAddr {
        let host = self.host(site);
        let (listener, port) = for_c_clients(site, host, options.clone());
        let host = host.to_string();
        let role = [&["-s", &host], more].concat();
        let client = self.start(rdma_core, port, &role);
        let (stream, peer) = accept(&listener);
        self.run(&stream, false);
        expect_end(site, &stream);
        drop(stream);
        Self::check(&client.finish());
        peer.ip()
    }

    pub(super) fn in_both_roles(self, site: &Site, options: &StreamOptions) {
        for rdma_core in RdmaCore::compared() {
            self.as_client(site, *rdma_core, options);
            self.as_server(site, *rdma_core, options);
        }
    }
}

/// rstream closes the stream. siw may not read the last message of a peer that disconnects: it
/// skips what arrives while it changes the state of the queue pair (`siw_qp_llp_data_ready`).
pub(super) fn expect_end(site: &Site, mut stream: &RdmaStream) {
    match stream.read(&mut [0]) {
        Err(error) if site.soft == Soft::Siw => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        end => assert_eq!(end.unwrap(), 0),
    }
}

/// Whether a server of librdmacm closed the connection instead of accepting it.
pub(super) fn is_closed_at_once(ended: &Ended) -> bool {
    ended.printed().iter().any(|line| line.contains("EINVAL"))
}

/// The bytes of rstream: each is one more than that before it.
#[derive(Default)]
pub(super) struct Counter(u8);

impl Counter {
    fn next(&mut self) -> u8 {
        let byte = self.0;
        self.0 = byte.wrapping_add(1);
        byte
    }

    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next()).collect()
    }

    pub(super) fn send(&mut self, mut stream: &RdmaStream, length: usize) {
        let bytes = self.bytes(length);
        stream.write_all(&bytes).unwrap();
    }

    pub(super) fn receive(&mut self, mut stream: &RdmaStream, length: usize) {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        assert!(bytes.into_iter().all(|byte| byte == self.next()));
    }
}

#[case]
fn pages_are_exchanged(site: &Site) {
    Test::new(4096, 100, 5).in_both_roles(site, &StreamOptions::new());
}

/// More messages than the credits allow, within one half of the receive buffer: updates without
/// an announcement.
#[case]
fn small_messages_are_exchanged(site: &Site) {
    Test::new(64, 1, 500).in_both_roles(site, &StreamOptions::new());
}

#[case]
fn sizes_that_fill_no_buffer_are_exchanged(site: &Site) {
    for size in [17, 2047, 2049, 65_535, 65_537, 300_003] {
        Test::new(size, 2, 2).in_both_roles(site, &StreamOptions::new());
    }
}

#[case]
fn large_messages_are_exchanged(site: &Site) {
    Test::new(4_194_304, 1, 1).in_both_roles(site, &StreamOptions::new());
}

/// Queues of the least size that librdmacm has.
#[case]
fn queues_of_the_least_size_are_enough(site: &Site) {
    let least = StreamOptions::new().receives(16).sends(16);
    Test::new(3000, 50, 5).in_both_roles(site, &least);
}

#[case]
fn shared_receives_are_enough(site: &Site) {
    let shared = StreamOptions::new().receives(16).shared_receives(32);
    Test::new(3000, 50, 5).in_both_roles(site, &shared);
}

#[case]
fn tiny_buffers_are_exchanged(site: &Site) {
    let small = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
    let small = small.receives(16).sends(16);
    let test = Test::new(100_000, 1, 1).with(&["-B", "4096"]);
    test.in_both_roles(site, &small);
}

#[case]
fn streams_are_polled(site: &Site) {
    Test::new(1000, 10, 10)
        .with(&["-T", "a"])
        .in_both_roles(site, &StreamOptions::new());
}

/// Addresses by `rdma_getaddrinfo`.
#[case]
fn addresses_are_resolved_for_rdma(site: &Site) {
    let test = Test::new(1000, 10, 10).with(&["-T", "r"]);
    test.in_both_roles(site, &StreamOptions::new());
}

#[case]
fn calls_that_do_not_wait_are_repeated(site: &Site) {
    let test = Test::new(5000, 10, 5).nonblocking();
    test.in_both_roles(site, &StreamOptions::new());
}

#[case]
fn streams_are_polled_without_a_timeout(site: &Site) {
    let test = Test::new(5000, 10, 5).nonblocking().with(&["-T", "a"]);
    test.in_both_roles(site, &StreamOptions::new());
}

/// `rdmacm cat` sends back what a client sends: its output is its input.
#[case]
fn cat_serves_a_client(site: &Site) {
    let test = Test::new(5000, 20, 5);
    for rdma_core in RdmaCore::compared() {
        let (input, output) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let (server, port) = cat::server(site, input, output);
        hold_back_first_messages(site, &port);
        let port = port.parse().unwrap();
        let client = test.start(*rdma_core, port, &["-s", &site.v4.to_string()]);
        Test::check(&client.finish());
        let ended = server.finish();
        if site.soft == Soft::Rxe {
            ended.assert_success();
        }
    }
}

/// `rdmacm cat` sends what a client sends, and its output is what the server sends.
#[case]
fn cat_is_a_client(site: &Site) {
    let test = Test::new(5000, 20, 5);
    let bytes = Counter::default().bytes(test.bytes());
    for rdma_core in RdmaCore::compared() {
        let mut closed = 0;
        loop {
            let port = free_port();
            hold_back_first_messages(site, &port.to_string());
            let server = test.start(*rdma_core, port, &["-b", &site.v4.to_string()]);
            wait_until_its_socket_listens(&server, &format!("{}:{port}", site.v4));
            let received = cat::memory_file(b"");
            let output = received.try_clone().unwrap();
            let client = cat::client(site, &port.to_string(), cat::memory_file(&bytes), output);
            let ended = client.finish();
            if site.soft == Soft::Siw && closed < 3 && is_closed_at_once(&ended) {
                closed += 1;
                continue;
            }
            let received = cat::content(&received);
            if site.soft == Soft::Siw && !ended.status.success() {
                // What it has not sent yet is lost, too, when librdmacm closes the connection.
                let printed = ended.printed();
                assert!(bytes.starts_with(&received), "{printed:?}");
            } else {
                ended.assert_success();
                assert!(received == bytes, "{} bytes", received.len());
            }
            Test::check(&server.finish());
            break;
        }
    }
}
