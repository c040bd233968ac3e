//! One deadline limits all queries to the kernel.

use std::time::{Duration, Instant};

use rdmacm_addrinfo::Step;
use rdmacm_core::CmAddr;
use rdmacm_tests::Site;

use super::private_etc::PrivateEtc;
use super::{assert_explained, rc, refusal, resolve};
use rdmacm_tests_macros::case;

const DEADLINE: Duration = Duration::from_secs(5);

/// Checks that it took the deadline's time once.
#[track_caller]
fn took_one_deadline(started: Instant) {
    let elapsed = started.elapsed();
    // The kernel counts in ticks.
    let least = DEADLINE.mul_f32(0.95);
    assert!(elapsed >= least && elapsed < 2 * DEADLINE, "{elapsed:?}");
}

#[case(waiting)]
fn a_silent_neighbour_ends_at_the_deadline(site: &Site) {
    let silent = site.silent.to_string();
    let started = Instant::now();
    let found = resolve(site, silent.as_str(), "7471", &rc().deadline(DEADLINE));
    took_one_deadline(started);
    let unreachable = refusal(found);
    assert_explained(&unreachable, Step::Address, "answer");
    assert_explained(&unreachable, Step::Address, "neighbour");
}

/// Three silent addresses on the device's network.
#[case(waiting)]
fn silent_neighbours_share_the_deadline(site: &Site) {
    let hosts = hosts(site, [77, 78, 79]);
    PrivateEtc::new().file("hosts", &hosts).run(|| {
        let started = Instant::now();
        let found = resolve(site, "several", "7471", &rc().deadline(DEADLINE));
        took_one_deadline(started);
        let found = found.unwrap();
        assert_eq!(found.len(), 3);
        for info in found {
            assert_explained(&info.route.unwrap_err(), Step::Address, "neighbour");
        }
    });
}

#[case(waiting)]
fn a_silent_neighbour_does_not_delay_others(site: &Site) {
    let hosts = hosts(site, [77, 1]);
    PrivateEtc::new().file("hosts", &hosts).run(|| {
        let found = resolve(site, "several", "7471", &rc().deadline(DEADLINE)).unwrap();
        let [reached, silent] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(reached.is_reachable(), "{reached}");
        assert_eq!(reached.destination, Some(site.v4(7471)));
        assert_eq!(silent.destination, Some(CmAddr::from((site.silent, 7471))));
    });
}

/// The shortest timeout reaches the kernel as 1 ms.
#[case(waiting)]
fn a_deadline_in_the_past_ends_at_once(site: &Site) {
    let silent = site.silent.to_string();
    let past = rc().deadline(Instant::now());
    let unreachable = refusal(resolve(site, silent.as_str(), "7471", &past));
    assert_explained(&unreachable, Step::Address, "answer");
}

/// A name with these addresses of the device's network.
fn hosts<const N: usize>(site: &Site, last: [u8; N]) -> String {
    let [a, b, c, _] = site.v4.octets();
    last.map(|d| format!("{a}.{b}.{c}.{d} several\n")).concat()
}
