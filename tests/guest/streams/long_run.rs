//! More messages than 16 bits count, and librdmacm as the peer.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use rdmacm::StreamOptions;
use rdmacm_tests::Site;
use rdmacm_tests_macros::case;

use super::rsocket_calls::{client_with, server};
use super::rstream::expect_end;
use crate::rdma_core::RdmaCore;

const MESSAGES: u32 = 70_000;
const SIZE: u8 = 64;

/// Sets the length of all queues, for a longer run in both directions: what waits more often takes
/// longer.
const REQUESTS: &str = "RDMACM_REQUESTS";

/// librdmacm's by default.
const DEFAULT: u32 = 384;
/// Of librdmacm, with its send requests nearly as many as a completion queue of rxe holds.
const MOST: u32 = 0x7000;
/// As many receive requests as a stream of this library has at most.
const MOST_RECEIVES: u32 = 16_383;
/// Of librdmacm, a completion queue of rxe holds as many and `MOST`.
const MOST_SENDS: u32 = 2048;

/// Which side of the connection librdmacm is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// A connection with librdmacm, and how many messages each side sends.
struct Run {
    rdma_core: RdmaCore,
    role: Role,
    requests: u32,
    sent: u32,
    received: u32,
}

/// Each side and each direction, but not with each other: it takes a while.
fn runs() -> Vec<Run> {
    let newest = RdmaCore::preloaded_since(0).last().unwrap();
    let run = |role, requests, sent, received| Run {
        rdma_core: newest,
        role,
        requests,
        sent,
        received,
    };
    if let Ok(requests) = std::env::var(REQUESTS) {
        let requests = requests.parse().unwrap();
        let roles = [Role::Client, Role::Server];
        return roles
            .map(|role| run(role, requests, MESSAGES, MESSAGES))
            .into();
    }
    let of_the_system = Run {
        rdma_core: RdmaCore::System,
        ..run(Role::Client, DEFAULT, 0, MESSAGES)
    };
    vec![of_the_system, run(Role::Server, MOST, MESSAGES, 0)]
}

fn message(number: u32) -> Vec<u8> {
    let numbers = u32::from(SIZE) / 4;
    let numbers = number * numbers..(number + 1) * numbers;
    numbers.flat_map(u32::to_ne_bytes).collect()
}

#[case(needs(Preloaded))]
fn sequence_numbers_begin_again(site: &Site) {
    for run in runs() {
        run.go(site);
    }
}

impl Run {
    fn go(self, site: &Site) {
        let Self {
            rdma_core,
            role,
            requests,
            sent,
            received,
        } = self;
        let options = StreamOptions::new().receives(requests.min(MOST_RECEIVES));
        let options = options.sends(requests.min(MOST_SENDS));
        let numbers = [requests, sent, received, SIZE.into()].map(|number| number as usize);
        let (peer, mut stream) = match role {
            Role::Client => client_with(site, rdma_core, "outlasts", &numbers, options),
            Role::Server => server(site, rdma_core, "outlasts", &numbers, &options),
        };
        for number in 0..sent {
            stream.write_all(&message(number)).unwrap();
        }
        let mut arrived = [0; SIZE as usize];
        for number in 0..received {
            stream.read_exact(&mut arrived).unwrap();
            assert_eq!(arrived, *message(number), "{role:?} {number}");
        }
        stream.shutdown(Shutdown::Write).unwrap();
        expect_end(site, &stream);
        peer.finish().assert_success();
    }
}
