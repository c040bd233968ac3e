//! Calls of librdmacm's rsockets that none of its programs make, by Python.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use rdmacm::{Listener, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::rstream::{Test, expect_end};
use crate::c_tools::tool::Tool;
use crate::packet_delay::hold_back_first_messages;
use crate::rdma_core::RdmaCore;

const SCRIPT: &str = include_str!("rsocket_calls.py");

/// Starts a client that executes a command, and listens for it.
fn start(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    number: usize,
    options: StreamOptions,
) -> (Tool, RdmaListener) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    hold_back_first_messages(site, &port.to_string());
    let listener = RdmaListener::new(listener, options);
    let client = script(site, rdma_core, command, port, number);
    (client, listener)
}

/// Starts a client of this port that executes a command.
pub(crate) fn script(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    port: u16,
    number: usize,
) -> Tool {
    let (address, port, number) = (site.v4.to_string(), port.to_string(), number.to_string());
    let arguments = ["-c", SCRIPT, command, &address, &port, &number];
    Tool::start_with(rdma_core, "python3", &arguments)
}

/// The same, and accepts it.
fn client(
    site: &Site,
    rdma_core: RdmaCore,
    command: &str,
    number: usize,
    options: StreamOptions,
) -> (Tool, RdmaStream) {
    let (client, listener) = start(site, rdma_core, command, number, options);
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    (client, stream)
}

/// More of them than there are credits: each is returned, which librdmacm itself does not do.
#[case(needs(Preloaded))]
fn mapped_regions_return_their_credits(site: &Site) {
    const CYCLES: usize = 100;
    for rdma_core in RdmaCore::preloaded_since(0) {
        let options = StreamOptions::new().receives(16).map_entries(1);
        let (mut client, mut stream) = client(site, rdma_core, "maps", CYCLES, options);
        stream.read_exact(&mut [0; CYCLES]).unwrap();
        client.wait_for("done");
        stream.close(PATIENCE).unwrap();
        client.finish().assert_success();
    }
}

#[case(needs(Preloaded))]
fn keep_alives_are_not_bytes_and_a_killed_client_is_noticed(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(0) {
        let (mut client, mut stream) = client(site, rdma_core, "idle", 3, StreamOptions::new());
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
        stream.write_all(b"y").unwrap();
        client.wait_for("done");
        drop(client);
        let error = stream.read(&mut byte).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
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
        let (client, listener) = start(site, rdma_core, "closes", STREAMS, small);
        thread::scope(|scope| {
            for _ in 0..STREAMS {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || expect_end(site, &stream));
            }
        });
        client.finish_within(SECOND * 15).assert_success();
    }
}

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
