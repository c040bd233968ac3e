//! Calls of librdmacm's rsockets that none of its programs make, by Python.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use rdmacm::{RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_tests_macros::case;

use super::rstream::{Test, expect_end};
use super::{accept, bytes, for_c_clients, inline, to_c_server};
use crate::c_tools::tool::Tool;
use crate::rdma_core::{COMPARED_PROGRAM, RdmaCore};

const SCRIPT: &str = include_str!("rsocket_calls.py");

/// Starts a client that executes a command, and listens for it.
pub(super) fn start(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    numbers: &[usize],
    options: StreamOptions,
) -> (Tool, RdmaListener) {
    let (listener, port) = for_c_clients(site, site.v4, options);
    let client = script(site, rdma_core, command, port, numbers);
    (client, listener)
}

/// Starts a client of this port that executes a command.
pub(crate) fn script(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    port: u16,
    numbers: &[usize],
) -> Tool {
    script_as("client", site, rdma_core, command, port, numbers)
}

/// Starts a server that executes a command with its first client, and connects to it. The client
/// sends a byte first.
pub(super) fn server(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    numbers: &[usize],
    options: &StreamOptions,
) -> (Tool, RdmaStream) {
    let (server, mut stream) = to_c_server(site, site.v4.into(), options, |port| {
        let mut server = script_as("server", site, rdma_core, command, port, numbers);
        server.wait_for("listening");
        server
    });
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"x").unwrap();
    (server, stream)
}

fn script_as(
    role: &str,
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    port: u16,
    numbers: &[usize],
) -> Tool {
    let (address, port) = (site.v4.to_string(), port.to_string());
    let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
    let mut arguments = vec!["-c", SCRIPT, role, command, &address, &port];
    arguments.extend(numbers.iter().map(String::as_str));
    Tool::start_with(rdma_core, "python3", &arguments)
}

/// The same, and accepts it.
pub(super) fn client(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    number: usize,
    options: StreamOptions,
) -> (Tool, RdmaStream) {
    client_with(site, rdma_core, command, &[number], options)
}

/// The same, with more numbers.
pub(super) fn client_with(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    numbers: &[usize],
    options: StreamOptions,
) -> (Tool, RdmaStream) {
    let (client, listener) = start(site, rdma_core, command, numbers, options);
    let (stream, _) = accept(&listener);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    (client, stream)
}

/// More of them than there are credits: each is returned, which librdmacm itself does not do.
#[case(needs(Preloaded))]
fn mapped_regions_return_their_credits(site: &Site) {
    const CYCLES: usize = 100;
    for rdma_core in RdmaCore::preloaded_since(0) {
        let options = StreamOptions::new().receives(16).map_entries(1);
        for (mut peer, mut stream) in [
            client(site, rdma_core, "maps", CYCLES, options.clone()),
            server(site, rdma_core, "maps", &[CYCLES], &options),
        ] {
            stream.read_exact(&mut [0; CYCLES]).unwrap();
            peer.wait_for("done");
            stream.close(PATIENCE).unwrap();
            peer.finish().assert_success();
        }
    }
}

#[case(needs(Preloaded))]
fn keep_alives_are_not_bytes_and_a_killed_peer_is_noticed(site: &Site) {
    let options = StreamOptions::new();
    for rdma_core in RdmaCore::preloaded_since(0) {
        for (mut peer, mut stream) in [
            client(site, rdma_core, "idle", 3, options.clone()),
            server(site, rdma_core, "idle", &[3], &options),
        ] {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            assert_eq!(byte, *b"x");
            stream.write_all(b"y").unwrap();
            peer.wait_for("done");
            drop(peer);
            let error = stream.read(&mut byte).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
    }
}

/// `rclose` waits until its last message is acknowledged: for all of its retries if this side has
/// destroyed its queue pair before its device could do so.
#[case(needs(Preloaded, AcknowledgedSends))]
fn closing_clients_are_acknowledged(site: &Site) {
    const STREAMS: usize = 60;
    for rdma_core in RdmaCore::preloaded_since(0) {
        // As much memory as may be locked.
        let small = StreamOptions::new().receive_buffer(4096).send_buffer(4096);
        let (client, listener) = start(site, rdma_core, "closes", &[STREAMS], small);
        thread::scope(|scope| {
            for _ in 0..STREAMS {
                let (stream, _) = accept(&listener);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                scope.spawn(move || expect_end(site, &stream));
            }
        });
        // librdmacm's seven retries have no end on rxe.
        client.finish_within(PATIENCE).assert_success();
    }
}

/// Each message costs the peer one of its credits; they run out many times.
#[case(needs(Preloaded))]
fn queues_of_the_least_size_are_enough_for_either_side(site: &Site) {
    let least = StreamOptions::new().receives(16).sends(16);
    let one_by_one = StreamOptions::new().receives(1).sends(2);
    for rdma_core in RdmaCore::preloaded_since(0) {
        for (requests, options) in [
            (LEAST_REQUESTS, StreamOptions::new()),
            (DEFAULT_REQUESTS, least.clone()),
            (LEAST_REQUESTS, least.clone()),
            (LEAST_REQUESTS, one_by_one.clone()),
        ] {
            exchange_with_echoes(site, rdma_core, requests, &[DEFAULT_INLINE], &options);
        }
    }
}

/// librdmacm sends shorter messages inline, and keeps its own in a buffer if even these are
/// longer. This side sends shorter writes inline.
#[case(needs(Preloaded))]
fn any_inline_size_is_enough(site: &Site) {
    let options = StreamOptions::new().receives(16).sends(16);
    for rdma_core in RdmaCore::preloaded_since(0) {
        let least = least_release_without_inline(site);
        let works_without_inline = rdma_core.release(COMPARED_PROGRAM) >= least;
        let most = inline::most(site);
        let sizes = [0, 4, 15, 16, 64, most as usize];
        let sizes = &sizes[usize::from(!works_without_inline)..];
        exchange_with_echoes(site, rdma_core, LEAST_REQUESTS, sizes, &options);
        for own in [0, most] {
            let options = options.clone().inline(own);
            exchange_with_echoes(site, rdma_core, LEAST_REQUESTS, &[DEFAULT_INLINE], &options);
        }
    }
}

/// The least length of a queue, and that without an option.
const LEAST_REQUESTS: usize = 16;
const DEFAULT_REQUESTS: usize = 384;
const DEFAULT_INLINE: usize = 64;

/// Messages that are inline on this side, and longer ones.
const SIZES: [usize; 8] = [1, 63, 64, 65, 2, 513, 3, 2000];

/// librdmacm has queues of this length, and a stream for each inline size. It returns what it
/// receives, while this side goes on.
fn exchange_with_echoes(
    site: &Site,
    rdma_core: RdmaCore,
    requests: usize,
    inline_sizes: &[usize],
    options: &StreamOptions,
) {
    let sizes = [&SIZES.repeat(30)[..], &[100_000]].concat();
    let bytes = bytes(sizes.iter().sum());
    let numbers = [&[bytes.len(), requests], inline_sizes].concat();
    let (client, listener) = start(site, rdma_core, "echoes", &numbers, options.clone());
    let exchange = |stream: RdmaStream| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut left = &bytes[..];
                for size in &sizes {
                    let (message, rest) = left.split_at(*size);
                    (&stream).write_all(message).unwrap();
                    left = rest;
                }
            });
            let mut returned = vec![0; bytes.len()];
            (&stream).read_exact(&mut returned).unwrap();
            assert!(returned == bytes);
        });
        stream.shutdown(Shutdown::Write).unwrap();
        expect_end(site, &stream);
    };
    for _ in inline_sizes {
        let (stream, _) = accept(&listener);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        exchange(stream);
    }
    client.finish().assert_success();
    // A server for the least and the most of them.
    let (least, most) = (inline_sizes.first(), inline_sizes.last());
    let sizes_of_servers = least.into_iter().chain(most.filter(|_| least != most));
    for inline in sizes_of_servers {
        let numbers = [bytes.len(), requests, *inline];
        let (server, stream) = server(site, rdma_core, "echoes", &numbers, options);
        exchange(stream);
        server.finish().assert_success();
    }
}

/// Before this release, librdmacm's messages on iWARP need four bytes of inline data.
pub(super) fn least_release_without_inline(site: &Site) -> u32 {
    match site.soft {
        Soft::Rxe => 0,
        Soft::Siw => 51,
    }
}

pub(crate) fn work_without_inline(site: &Site) -> bool {
    let least = least_release_without_inline(site);
    RdmaCore::preloaded_since(least).next().is_some()
}

pub(crate) const NEED_INLINE: &str = "streams of librdmacm before 51 need inline data on iWARP";

/// While this side waits for bytes of an idle server.
#[case]
fn librdmacm_takes_keep_alives(site: &Site) {
    let options = StreamOptions::new().keep_alive(SECOND / 10);
    let test = Test::new(64, 5, 5);
    for rdma_core in RdmaCore::compared() {
        let (server, stream) = test.connected(site, *rdma_core, &options);
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let waited = (&stream).read(&mut [0]).unwrap_err();
        assert_eq!(waited.kind(), ErrorKind::TimedOut, "{waited}");
        test.run(&stream, true);
        drop(stream);
        Test::check(&server.finish());
    }
}
