//! A daemon that says anything.

use std::time::{Duration, Instant};

use proptest::prelude::RngCore as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::super::daemon::{AcmDaemon, Action};
use super::super::testing::{ip, path, reply};
use super::super::{Acm, Failure};
use super::{question, rundir, within};

/// Seconds of [`anything_may_be_answered`] for a longer run.
const FUZZ_SECONDS: &str = "RDMACM_FUZZ_SECONDS";

/// Replies with something wrong in them, and things that are no replies.
struct Liar(TestRng);

impl Liar {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.next_u32()).unwrap() % limit
    }

    fn bytes(&mut self, limit: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.below(limit)];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    fn reply(&mut self) -> Vec<u8> {
        let count = self.below(9);
        let entries = (0..count).map(|_| match self.below(4) {
            0 => path(0x2b, 1),
            1 => ip(1, &[10, 1, 0, 3]),
            2 => ip(1, &[0xfd; 16]),
            _ => {
                let mut entry = self.bytes(72);
                entry.resize(72, 0);
                entry
            }
        });
        let entries: Vec<_> = entries.collect();
        reply(&entries)
    }

    fn mutated(&mut self) -> Vec<u8> {
        let mut reply = self.reply();
        for _ in 0..self.below(4) {
            let limit = if self.below(2) == 0 { 16 } else { reply.len() };
            let permit = self.below(limit.min(reply.len()));
            reply[permit] ^= 1 << self.below(8);
        }
        if self.below(4) == 0 {
            reply.truncate(self.below(reply.len()) + 1);
        }
        if self.below(8) == 0 {
            reply.extend(self.bytes(700));
        }
        reply
    }

    fn acts(&mut self) -> Vec<Action> {
        let said = match self.below(64) {
            0 => Vec::new(),
            1..16 => self.bytes(700),
            16..24 => self.reply(),
            _ => self.mutated(),
        };
        let size = self.below(said.len() + 1) + 1;
        let mut acts: Vec<_> = said
            .chunks(size)
            .map(<[u8]>::to_vec)
            .map(Action::Send)
            .collect();
        if self.below(2) == 0 {
            acts.push(Action::Close);
        }
        acts
    }
}

/// Nothing panics and nothing takes longer than it may, whatever is said.
#[test]
fn anything_may_be_answered() {
    let seconds = std::env::var(FUZZ_SECONDS).map_or(1, |seconds| seconds.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    // A slow machine needs longer to see each outcome.
    let limit = end + Duration::from_secs(60);
    let rundir = rundir();
    let mut liar = Liar(TestRng::from_seed(RngAlgorithm::XorShift, &[7; 16]));
    let _daemon = AcmDaemon::unix(rundir.path(), move |_| liar.acts());
    let acm = Acm::with_rundir(rundir.path());
    let mut outcomes = [0_u64; 5];
    loop {
        let started = Instant::now();
        let has_each = outcomes[..4].iter().all(|times| *times > 0);
        let until = if has_each { end } else { limit };
        if started >= until {
            break;
        }
        let answer = acm.ask(&question(7), &within(Duration::from_millis(20)));
        assert!(started.elapsed() < Duration::from_secs(20));
        let outcome = match answer {
            Ok(reply) => {
                assert!(reply.paths.len() <= 8);
                0
            }
            Err(Failure::Silent) => 1,
            Err(Failure::Ended { .. }) => 2,
            Err(Failure::Nonsense(_)) => 3,
            Err(Failure::Absent(_) | Failure::Skipped) => 4,
        };
        outcomes[outcome] += 1;
        acm.daemon.known().absent_until = None;
    }
    let [answers, silences, ends, nonsense, absences] = outcomes;
    assert!(
        answers > 0 && silences > 0 && ends > 0 && nonsense > 0,
        "{outcomes:?}"
    );
    assert_eq!(absences, 0);
}
