//! rstream whose process is killed, stopped or idle, as a server and as a client.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

use super::rsocket_calls::{client, server};
use super::rstream::{Counter, Test};
use super::{accept, fill, for_c_clients};
use crate::c_tools::tool::Tool;
use crate::rdma_core::RdmaCore;

/// rstream sends or receives this many messages of 64 bytes in turn.
const ONE_BY_ONE: Test = Test::new(64, 1, 1000);
/// More than fit into all buffers.
const ALL_AT_ONCE: Test = Test::new(64, 1_000_000, 1);

/// Longer than it takes to learn of a peer's end, with the retries of its last requests.
const PROMPT: Duration = SECOND.saturating_mul(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// An rstream, and the stream to it.
struct Peer {
    rstream: Tool,
    stream: RdmaStream,
    sent: Counter,
    received: Counter,
}

impl Peer {
    /// One that has exchanged its first messages. Then a server waits for more, and a client
    /// sends some.
    fn new(
        site: &Site,
        rdma_core: RdmaCore,
        role: Role,
        test: Test,
        options: &StreamOptions,
    ) -> Self {
        let (rstream, stream) = match role {
            Role::Server => test.connected(site, rdma_core, options),
            Role::Client => {
                let (listener, port) = for_c_clients(site, site.v4, options.clone());
                let client = test.start(rdma_core, port, &["-s", &site.v4.to_string()]);
                (client, accept(&listener).0)
            }
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut peer = Self {
            rstream,
            stream,
            sent: Counter::default(),
            received: Counter::default(),
        };
        match role {
            Role::Server => {
                peer.sent.send(&peer.stream, 16);
                peer.received.receive(&peer.stream, 16);
            }
            Role::Client => {
                peer.received.receive(&peer.stream, 16);
                peer.sent.send(&peer.stream, 16);
                peer.received.receive(&peer.stream, test.size);
            }
        }
        peer.stream.set_read_timeout(Some(PROMPT)).unwrap();
        peer.stream.set_write_timeout(Some(PROMPT)).unwrap();
        peer
    }

    /// In both roles, of each release.
    fn each(site: &Site, test: Test) -> impl Iterator<Item = (Role, Self)> {
        Self::each_with(site, test, StreamOptions::new())
    }

    fn each_with(
        site: &Site,
        test: Test,
        options: StreamOptions,
    ) -> impl Iterator<Item = (Role, Self)> {
        let all = RdmaCore::compared().iter();
        let all = all.flat_map(|one| [Role::Server, Role::Client].map(|role| (*one, role)));
        all.map(move |(rdma_core, role)| (role, Self::new(site, rdma_core, role, test, &options)))
    }

    /// Stops the process, and writes until this side waits for credits.
    fn stop_and_fill(&mut self) {
        self.rstream.suspend();
        fill(&self.stream, || self.sent.bytes(64));
    }

    /// The next message of both sides.
    fn exchange(&mut self) {
        self.sent.send(&self.stream, 64);
        self.received.receive(&self.stream, 64);
    }
}

fn read(mut stream: &RdmaStream) -> io::Result<usize> {
    stream.read(&mut [0; 64])
}

fn write(mut stream: &RdmaStream) -> io::Result<usize> {
    stream.write(&[0; 64])
}

/// Writes while there are credits.
fn write_to_the_error(stream: &RdmaStream) -> io::Result<usize> {
    let mut writes = std::iter::repeat_with(|| write(stream));
    writes.find(io::Result::is_err).unwrap()
}

fn expect_reset(outcome: io::Result<usize>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[case]
fn a_waiting_reader_learns_that_it_was_killed(site: &Site) {
    for (_, peer) in Peer::each(site, ONE_BY_ONE) {
        let Peer {
            rstream, stream, ..
        } = peer;
        thread::scope(|scope| {
            let reading = scope.spawn(|| read(&stream));
            rstream.kill();
            expect_reset(reading.join().unwrap());
        });
        expect_reset(write(&stream));
    }
}

#[case]
fn a_waiting_writer_learns_that_it_was_killed(site: &Site) {
    for (_, mut peer) in Peer::each(site, ONE_BY_ONE) {
        peer.stop_and_fill();
        let Peer {
            rstream, stream, ..
        } = peer;
        thread::scope(|scope| {
            let writing = scope.spawn(|| write_to_the_error(&stream));
            rstream.kill();
            expect_reset(writing.join().unwrap());
        });
        expect_reset(read(&stream));
    }
}

#[case]
fn the_next_read_learns_that_it_was_killed(site: &Site) {
    for (_, peer) in Peer::each(site, ONE_BY_ONE) {
        let Peer {
            rstream, stream, ..
        } = peer;
        rstream.stop();
        expect_reset(read(&stream));
        expect_reset(write(&stream));
    }
}

/// Writes go on until the end has arrived.
#[case]
fn a_later_write_learns_that_it_was_killed(site: &Site) {
    for (_, peer) in Peer::each(site, ONE_BY_ONE) {
        let Peer {
            rstream, stream, ..
        } = peer;
        rstream.stop();
        expect_reset(write_to_the_error(&stream));
        expect_reset(read(&stream));
    }
}

/// Keep-alives of both sides are no messages. The kernel disconnects for a process that was
/// killed, so that nobody waits for the next one.
#[case(waiting)]
fn an_idle_stream_goes_on_until_it_is_killed(site: &Site) {
    let options = StreamOptions::new().keep_alive(SECOND);
    let test = ONE_BY_ONE.with(&["-k", "1"]);
    let peers: Vec<_> = Peer::each_with(site, test, options).collect();
    thread::scope(|scope| {
        for (_, mut peer) in peers {
            scope.spawn(move || {
                peer.stream.set_read_timeout(Some(SECOND * 5)).unwrap();
                let error = read(&peer.stream).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
                peer.stream.set_read_timeout(Some(PROMPT)).unwrap();
                peer.exchange();
                peer.rstream.kill();
                expect_reset(read(&peer.stream));
            });
        }
    });
}

/// Its device acknowledges what was written, as there are credits for it, and the message that
/// ends the stream as well.
#[case]
fn a_stopped_rstream_does_not_delay_a_close(site: &Site) {
    for (role, mut peer) in Peer::each(site, ALL_AT_ONCE) {
        peer.stop_and_fill();
        peer.stream.close(SECOND * 5).unwrap();
        peer.rstream.resume();
        // A server takes the end of the stream for a reason to try again.
        if role == Role::Client {
            let ended = peer.rstream.finish();
            let last = ended.printed().last().unwrap();
            assert_eq!(
                last,
                "rsend: Connection reset by peer",
                "{:?}",
                ended.printed()
            );
        }
    }
}

/// When it goes on, it reads every byte of a stream that was closed meanwhile, and then the end.
fn expect_all_is_read(client: Tool, mut stream: RdmaStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    client.suspend();
    let mut bytes = (0..=255).cycle();
    let written = fill(&stream, || bytes.by_ref().take(64).collect());
    stream.close(SECOND * 5).unwrap();
    client.resume();
    let ended = client.finish();
    ended.assert_success();
    assert_eq!(ended.printed().last(), Some(&written.to_string()));
}

const QUEUES: [usize; 2] = [16, 384];

#[case(needs(Preloaded))]
fn a_stopped_client_reads_it_all_when_it_goes_on(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(0) {
        for requests in QUEUES {
            let options = StreamOptions::new();
            let (client, stream) = client(site, rdma_core, "counts", requests, options);
            expect_all_is_read(client, stream);
        }
    }
}

#[case(needs(Preloaded))]
fn a_stopped_server_reads_it_all_when_it_goes_on(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(0) {
        for requests in QUEUES {
            let options = StreamOptions::new();
            let (server, stream) = server(site, rdma_core, "counts", &[requests], &options);
            expect_all_is_read(server, stream);
        }
    }
}
