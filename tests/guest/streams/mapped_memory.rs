//! Memory that one side maps, and the other one writes at an offset.

use std::io::{ErrorKind, Read, Write};
use std::thread;

use rdmacm::{Cause, Error, RdmaStream, StreamOptions};
use rdmacm_tests::Site;
use rdmacm_tests_macros::case;
use rdmacm_verbs::RemoteAccessRegion;

use super::{Pair, bytes};

/// What was written and mapped before is known to the other side afterwards.
fn synchronize(from: &RdmaStream, to: &RdmaStream) {
    let (mut from, mut to) = (from, to);
    from.write_all(b"s").unwrap();
    to.read_exact(&mut [0]).unwrap();
}

/// A stream whose accepting side may send: the connecting side has sent something, after the
/// other one has accepted. siw reads what came before that only then, or once the connecting side
/// waits.
fn pair(site: &Site, client: &StreamOptions) -> Pair {
    let pair = Pair::with(site, client, &StreamOptions::new());
    synchronize(&pair.client, &pair.server);
    pair
}

fn content(memory: &RemoteAccessRegion) -> Vec<u8> {
    let mut content = vec![0; memory.len()];
    memory.read(0, &mut content);
    content
}

fn cause<T>(outcome: std::io::Result<T>) -> String {
    let Err(error) = outcome else {
        panic!("it succeeded")
    };
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    let error: &Error = error.unwrap();
    match error.cause() {
        Cause::NotMapped => "not mapped".into(),
        Cause::NoMapEntry => "no entry".into(),
        Cause::NotMappable => "not mappable".into(),
        other => other.to_string(),
    }
}

#[case]
fn bytes_go_where_they_are_mapped(site: &Site) {
    let with_entries = StreamOptions::new().map_entries(3);
    let Pair { client, server } = pair(site, &with_entries);
    assert_eq!(cause(client.write_at(b"x", 1000)), "not mapped");
    let first = server.map(100, 1000).unwrap();
    let second = server.map(300_000, 1100).unwrap();
    let third = server.map(8, u64::MAX - 8).unwrap();
    assert_eq!(cause(server.map(1, 0)), "no entry");
    assert_eq!(cause(client.map(1, 0)), "no entry");
    assert_eq!(cause(server.map(2, u64::MAX)), "not mappable");
    synchronize(&server, &client);

    let sent = bytes(300_100);
    client.write_all_at(&sent, 1000).unwrap();
    client.write_all_at(b"the last", u64::MAX - 8).unwrap();
    synchronize(&client, &server);
    assert!(content(&first) == sent[..100]);
    assert!(content(&second) == sent[100..]);
    assert_eq!(content(&third), b"the last");

    assert_eq!(client.write_at(&[7; 200], 301_050).unwrap(), 50);
    synchronize(&client, &server);
    assert_eq!(content(&second)[299_950..], [7; 50]);
    for offset in [0, 999, 301_100, u64::MAX] {
        assert_eq!(cause(client.write_at(b"x", offset)), "not mapped");
    }
    assert_eq!(client.write_at(b"", 0).unwrap(), 0);
}

/// Each entry takes a credit, which the other side returns.
#[case]
fn more_regions_than_credits_are_mapped(site: &Site) {
    let options = StreamOptions::new().map_entries(100).receives(16);
    let Pair { client, server } = pair(site, &options);
    let regions: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| (&client).read_exact(&mut [0]).unwrap());
        let regions = (0..100).map(|at| server.map(8, at * 8).unwrap()).collect();
        (&server).write_all(b"s").unwrap();
        regions
    });
    let sent = bytes(800);
    client.write_all_at(&sent, 0).unwrap();
    synchronize(&client, &server);
    for (region, sent) in regions.iter().zip(sent.chunks(8)) {
        assert_eq!(content(region), sent);
    }
}

/// A send buffer that fits less than what is written, and a send queue of two requests.
#[case]
fn writes_at_offsets_wait_for_room(site: &Site) {
    let client = StreamOptions::new().map_entries(1).send_buffer(64).sends(2);
    let Pair { client, server } = pair(site, &client);
    let memory = server.map(20_000, 0).unwrap();
    synchronize(&server, &client);
    let sent = bytes(20_000);
    client.write_all_at(&sent, 0).unwrap();
    synchronize(&client, &server);
    assert!(content(&memory) == sent);
}

/// Dropping the region does not take the memory from the peer, which does not know.
#[case]
fn mapped_memory_lives_as_long_as_the_stream(site: &Site) {
    let with_entry = StreamOptions::new().map_entries(1);
    let Pair { client, server } = pair(site, &with_entry);
    drop(server.map(5, 0).unwrap());
    synchronize(&server, &client);
    client.write_all_at(b"alive", 0).unwrap();
    synchronize(&client, &server);
    synchronize(&server, &client);
}
