//! rdma-core's riostream as the peer, in both roles. Each side maps a buffer, and the other side
//! writes there. A side that waits polls the last byte of its buffer.

use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::Instant;

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;
use rdmacm_verbs::RemoteAccessRegion;

use super::rstream::{Counter, Test};
use super::{accept, for_c_clients};
use crate::rdma_core::RdmaCore;

/// A side of the test.
struct Side<'a> {
    test: Test,
    stream: &'a RdmaStream,
    memory: RemoteAccessRegion,
    sent: Counter,
    received: Counter,
    /// The last byte of a buffer, which tells one round from another.
    marker: u8,
}

impl<'a> Side<'a> {
    /// Maps the buffer that the peer writes.
    fn new(test: Test, stream: &'a RdmaStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        assert!(test.iterations < 128, "each marker is another byte");
        let memory = stream.map(test.size, 0)?;
        memory.write(test.size - 1, &[u8::MAX]);
        Ok(Self {
            test,
            stream,
            memory,
            sent: Counter::default(),
            received: Counter::default(),
            marker: 0,
        })
    }

    fn run(mut self, is_client: bool) {
        let mut stream = self.stream;
        let mut message = [0; 16];
        if is_client {
            stream.write_all(&message).unwrap();
            stream.read_exact(&mut message).unwrap();
        } else {
            stream.read_exact(&mut message).unwrap();
            stream.write_all(&message).unwrap();
        }
        for _ in 0..self.test.iterations {
            if is_client {
                self.send();
                self.receive();
            } else {
                self.receive();
                self.send();
            }
        }
    }

    /// Writes into the peer's buffer as often as the test says; the peer waits for the marker of the
    /// last time. The others end with the byte that is in the buffer before the first.
    fn send(&mut self) {
        let mut buffer = vec![u8::MAX; self.test.size];
        for _ in 1..self.test.count {
            self.stream.write_all_at(&buffer, 0).unwrap();
        }
        buffer = self.sent.bytes(self.test.size - 1);
        buffer.push(self.next_marker());
        self.stream.write_all_at(&buffer, 0).unwrap();
    }

    fn receive(&mut self) {
        let last = self.test.size - 1;
        let marker = self.next_marker();
        let until = Instant::now() + PATIENCE;
        let mut buffer = vec![0; self.test.size];
        while {
            self.memory.read(last, &mut buffer[last..]);
            buffer[last] != marker
        } {
            assert!(Instant::now() < until, "{buffer:?}");
            thread::yield_now();
        }
        self.memory.read(0, &mut buffer);
        assert!(buffer[..last] == self.received.bytes(last));
    }

    fn next_marker(&mut self) -> u8 {
        let marker = self.marker;
        self.marker = marker.wrapping_add(1);
        marker
    }
}

/// riostream listens before it has a table for regions: if it accepts a client in between, a new
/// one is started.
fn as_client(site: &Site, test: Test, rdma_core: RdmaCore) {
    let options = StreamOptions::new().map_entries(1);
    let mut too_early = 0;
    loop {
        let (server, stream) = test.connected(site, rdma_core, &options);
        match Side::new(test, &stream) {
            Err(error) if too_early < 5 => {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
                too_early += 1;
            }
            mapped => {
                mapped.unwrap().run(true);
                return Test::check(&server.finish());
            }
        }
    }
}

fn as_server(site: &Site, test: Test, rdma_core: RdmaCore) {
    let options = StreamOptions::new().map_entries(1);
    let (listener, port) = for_c_clients(site, site.v4, options);
    let client = test.start(rdma_core, port, &["-s", &site.v4.to_string()]);
    let (stream, _) = accept(&listener);
    Side::new(test, &stream).unwrap().run(false);
    Test::check(&client.finish());
}

#[case]
fn buffers_are_written_at_their_offsets(site: &Site) {
    for (size, count, iterations) in [(64, 1, 5), (65_537, 1, 5), (4096, 10, 20)] {
        let test = Test::new(size, count, iterations).of_tool("riostream");
        for rdma_core in RdmaCore::compared() {
            as_client(site, test, *rdma_core);
            as_server(site, test, *rdma_core);
        }
    }
}
