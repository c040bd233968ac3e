//! More messages than 16 bits count, and librdmacm as the peer.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use rdmacm::StreamOptions;
use rdmacm_tests::{Site, Soft};
use rdmacm_tests_macros::case;

use super::rsocket_calls::client_with;
use super::rstream::expect_end;
use crate::rdma_core::RdmaCore;

const MESSAGES: u32 = 70_000;
const SIZE: u8 = 64;

/// Sets the length of all queues, for a longer run: what waits more often takes longer.
const REQUESTS: &str = "RDMACM_REQUESTS";

/// Those of librdmacm.
const DEFAULT_REQUESTS: u32 = 384;

fn requests() -> u32 {
    std::env::var(REQUESTS).map_or(DEFAULT_REQUESTS, |requests| requests.parse().unwrap())
}

fn message(number: u32) -> Vec<u8> {
    let numbers = u32::from(SIZE) / 4;
    let numbers = number * numbers..(number + 1) * numbers;
    numbers.flat_map(u32::to_ne_bytes).collect()
}

/// In both directions; on siw, where it takes twenty times as long, in one of them unless the run
/// is a longer one.
#[case(needs(Preloaded))]
fn sequence_numbers_begin_again(site: &Site) {
    let requests = requests();
    let is_one_way = site.soft == Soft::Siw && requests == DEFAULT_REQUESTS;
    let sent = if is_one_way { 0 } else { MESSAGES };
    let options = StreamOptions::new().receives(requests).sends(requests);
    let numbers = [requests, sent, MESSAGES, SIZE.into()].map(|number| number as usize);
    let (client, mut stream) = client_with(site, RdmaCore::System, "outlasts", &numbers, options);
    for number in 0..sent {
        stream.write_all(&message(number)).unwrap();
    }
    let mut received = [0; SIZE as usize];
    for number in 0..MESSAGES {
        stream.read_exact(&mut received).unwrap();
        assert_eq!(received, *message(number), "{number}");
    }
    stream.shutdown(Shutdown::Write).unwrap();
    expect_end(site, &stream);
    client.finish().assert_success();
}
