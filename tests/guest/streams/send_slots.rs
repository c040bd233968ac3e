//! Bytes that are sent from where their writer has put them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::thread;

use rdmacm::{RdmaStream, StreamOptions};
use rdmacm_tests::{SECOND, Site, Soft};
use rdmacm_tests_macros::case;

use super::{Pair, bytes};

/// Sends all of it in slots.
fn send(stream: &mut RdmaStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut slot = stream.reserve(bytes.len()).unwrap();
        let length = slot.len();
        assert!((1..=bytes.len()).contains(&length));
        let (now, later) = bytes.split_at(length);
        slot.copy_from_slice(now);
        slot.commit(length).unwrap();
        bytes = later;
    }
}

fn carry(from: &mut RdmaStream, to: &mut RdmaStream, bytes: &[u8]) {
    let mut received = vec![0; bytes.len()];
    thread::scope(|scope| {
        scope.spawn(|| send(from, bytes));
        to.read_exact(&mut received).unwrap();
    });
    assert!(received == bytes, "{} bytes differ", bytes.len());
}

fn check_sizes(site: &Site, options: &StreamOptions) {
    let Pair {
        mut client,
        mut server,
    } = Pair::with(site, options, &StreamOptions::new());
    for size in [1, 65, 10_001, 300_003] {
        let bytes = bytes(size);
        carry(&mut client, &mut server, &bytes);
        carry(&mut server, &mut client, &bytes);
    }
}

#[case]
fn slots_carry_any_size(site: &Site) {
    check_sizes(site, &StreamOptions::new());
}

#[case]
fn slots_of_tiny_buffers_carry_any_size(site: &Site) {
    let options = StreamOptions::new().receive_buffer(4096).send_buffer(64);
    check_sizes(site, &options.receives(4).sends(2));
}

#[case]
fn what_is_not_committed_is_not_sent(site: &Site) {
    let Pair { mut client, server } = Pair::new(site);
    for _ in 0..10 {
        client.reserve(1000).unwrap().fill(1);
    }
    client.reserve(1000).unwrap().commit(0).unwrap();
    client.write_all(b"one").unwrap();
    let mut slot = client.reserve(100).unwrap();
    slot[..5].copy_from_slice(b"twoXX");
    slot.commit(3).unwrap();
    client.write_all(b"three").unwrap();
    let mut received = [0; 11];
    (&server).read_exact(&mut received).unwrap();
    assert_eq!(&received, b"onetwothree");
    let refused = client.reserve(0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

/// The peer reads nothing, and then everything.
#[case]
fn a_reservation_waits_for_the_peer(site: &Site) {
    let options = StreamOptions::new().receive_buffer(10_000);
    let Pair { mut client, server } = Pair::with(site, &StreamOptions::new(), &options);
    client.set_write_timeout(Some(SECOND)).unwrap();
    let mut sent = 0;
    let error = loop {
        match client.reserve(3000) {
            Ok(slot) => {
                sent += slot.len();
                let length = slot.len();
                slot.commit(length).unwrap();
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    // On iWARP the accepting side announces its second half when it has heard the other one:
    // while it is accepted, or when it reads.
    let is_half = site.soft == Soft::Siw && sent == 5000;
    assert!(sent == 10_000 || is_half, "{sent} bytes");
    client.set_write_timeout(None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (&server).read_exact(&mut vec![0; sent + 1]).unwrap());
        client.reserve(1).unwrap().commit(1).unwrap();
    });
}
