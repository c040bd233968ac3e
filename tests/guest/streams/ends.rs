//! Streams that end in one direction before the other, or with bytes in flight, and librdmacm as
//! the peer.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Instant;

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_tests_macros::case;

use super::Pair;
use super::rsocket_calls::{client, server};
use super::rstream::expect_end;
use crate::c_tools::tool::Tool;
use crate::rdma_core::RdmaCore;

/// More than fits into the buffers.
const LENGTH: usize = 1 << 20;
/// Less than a buffer holds.
const SHORT: usize = 256;

fn content() -> Vec<u8> {
    (0..=255).cycle().take(LENGTH).collect()
}

/// Clients and servers that execute a command with as many bytes, and streams to them.
fn peers(site: &Site, command: &str, length: usize) -> impl Iterator<Item = (Tool, RdmaStream)> {
    let starts = [false, true];
    let each = RdmaCore::preloaded_since(0).flat_map(move |one| starts.map(|serves| (one, serves)));
    each.map(move |(one, serves)| {
        let options = StreamOptions::new();
        if serves {
            server(site, one, command, &[length], &options)
        } else {
            client(site, one, command, length, options)
        }
    })
}

#[case(needs(Preloaded))]
fn it_goes_on_sending_when_this_side_has_ended(site: &Site) {
    for (peer, mut stream) in peers(site, "answers", LENGTH) {
        stream.write_all(&content()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let error = stream.write(b"more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        let mut received = vec![0; LENGTH];
        stream.read_exact(&mut received).unwrap();
        assert!(received == content());
        peer.interrupt();
        expect_end(site, &stream);
        peer.finish().assert_success();
    }
}

#[case(needs(Preloaded))]
fn this_side_goes_on_sending_when_it_has_ended(site: &Site) {
    for (peer, mut stream) in peers(site, "asks", LENGTH) {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == content());
        stream.write_all(&content()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        peer.finish().assert_success();
        stream.close(PATIENCE).unwrap();
    }
}

/// With more than the buffers hold its end comes first; with less, the ends cross.
#[case(needs(Preloaded))]
fn both_end_at_the_same_time(site: &Site) {
    for length in [LENGTH, SHORT] {
        for (peer, stream) in peers(site, "asks", length) {
            thread::scope(|scope| {
                scope.spawn(|| {
                    (&stream).write_all(&content()[..length]).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                });
                let mut received = Vec::new();
                (&stream).read_to_end(&mut received).unwrap();
                assert!(received == content()[..length]);
            });
            peer.finish().assert_success();
            stream.close(PATIENCE).unwrap();
        }
    }
}

/// As with TCP: it reads what was written before.
#[case(needs(Preloaded))]
fn it_reads_every_byte_of_a_stream_that_was_dropped(site: &Site) {
    for (peer, mut stream) in peers(site, "reads", LENGTH) {
        stream.write_all(&content()).unwrap();
        drop(stream);
        peer.finish().assert_success();
    }
}

/// siw may skip the last bytes of a peer that disconnects, and the stream is reset then.
#[case(needs(Preloaded))]
fn every_byte_is_read_of_a_stream_that_it_has_closed(site: &Site) {
    for (peer, mut stream) in peers(site, "writes", LENGTH) {
        let mut received = Vec::new();
        match stream.read_to_end(&mut received) {
            Err(error) if site.soft == Soft::Siw => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
                assert!(content().starts_with(&received));
            }
            read => {
                read.unwrap();
                assert!(received == content());
            }
        }
        peer.finish().assert_success();
    }
}

/// Its peer must not take what has come for all there is.
#[case]
fn an_aborted_stream_does_not_end(site: &Site) {
    let Pair { client, mut server } = Pair::new(site);
    (&client).write_all(b"half").unwrap();
    server.read_exact(&mut [0; 4]).unwrap();
    client.abort();
    let error = server.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let error = server.write(&[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

/// Whichever it closes first. What is written before it is known is lost.
#[case]
fn writes_fail_once_the_peer_has_shut_down_both_directions(site: &Site) {
    for directions in [
        &[Shutdown::Write, Shutdown::Read][..],
        &[Shutdown::Read, Shutdown::Write],
        &[Shutdown::Both],
    ] {
        let Pair { client, mut server } = Pair::new(site);
        (&client).write_all(b"bye").unwrap();
        for direction in directions {
            client.shutdown(*direction).unwrap();
        }
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"bye");
        let until = Instant::now() + PATIENCE;
        let error = loop {
            assert!(Instant::now() < until, "{directions:?}: writes succeed");
            match server.write(&[0]) {
                Ok(written) => assert_eq!(written, 1),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        client.close(PATIENCE).unwrap();
        server.close(PATIENCE).unwrap();
    }
}
