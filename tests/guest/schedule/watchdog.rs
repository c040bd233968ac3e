//! The tests that run, so that one that hangs is named.

use std::collections::{BTreeMap, HashSet};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Arguments;
use rdmacm_tests::SECOND;
use rdmacm_tests_macros::case;

use super::{Planned, When, lock, plan};
use crate::c_tools::tool::Tool;
use crate::child;

/// Sets how long a test may run, in seconds, for tests that take long.
const LIMIT: &str = "RDMACM_TEST_LIMIT";
/// Longer than any test of the suite takes on a slow machine.
const USUAL_LIMIT: Duration = Duration::from_secs(600);
/// After which a test is named, in case the guest ends before the test's limit.
const LONG: Duration = Duration::from_secs(60);

/// When each running test began.
static RUNNING: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

pub(super) fn begins(test: String) {
    lock(&RUNNING).insert(test, Instant::now());
}

/// Returns how long it has run.
pub(super) fn ends(test: &str) -> Duration {
    let began = lock(&RUNNING).remove(test);
    began.map_or(Duration::ZERO, |began| began.elapsed())
}

/// Watches the tests of this process from now on.
pub(crate) fn start() {
    let limit = std::env::var(LIMIT).map_or(USUAL_LIMIT, |seconds| {
        Duration::from_secs(seconds.parse().unwrap())
    });
    thread::spawn(move || {
        let mut named = HashSet::new();
        loop {
            for test in running_for(LONG) {
                if named.insert(test.clone()) {
                    // Standard output has the results, a line of which may be half written.
                    eprintln!("{test} has run for {} s", LONG.as_secs());
                }
            }
            end_at(limit);
            thread::sleep(SECOND);
        }
    });
}

/// The tests that have run for so long.
fn running_for(time: Duration) -> Vec<String> {
    let running = lock(&RUNNING);
    let long = running.iter().filter(|(_, began)| began.elapsed() >= time);
    long.map(|(test, _)| test.clone()).collect()
}

/// Ends the process if a test has run for so long, which is that test's result.
fn end_at(limit: Duration) {
    let overdue = running_for(limit);
    if overdue.is_empty() {
        return;
    }
    let all = running_for(Duration::ZERO).join(", ");
    for test in overdue {
        // On a line of its own, whatever another test was about to print.
        println!("\ntest {test} ... FAILED\n\n---- {test} ----");
        println!("it has run for {} s; running: {all}\n", limit.as_secs());
    }
    std::process::exit(1);
}

pub(crate) const TASKS: &[(&str, fn())] = &[("runs_for_ever", run_for_ever)];

fn run_for_ever() {
    start();
    let sleep = || loop {
        thread::park();
    };
    let (trials, threads) = plan(vec![Planned::new("hangs".into(), When::Shared, sleep)]);
    let mut arguments = Arguments::from_iter(["suite"]);
    arguments.test_threads = Some(threads);
    libtest_mimic::run(&arguments, trials).exit_if_failed();
}

#[case]
fn a_test_that_takes_too_long_is_named_and_ends_the_suite() {
    let mut suite = child::task("runs_for_ever");
    let suite = suite.env(LIMIT, "1");
    let ended = Tool::spawn_on(suite, Stdio::null(), Stdio::piped()).finish();
    assert_eq!(ended.status.code(), Some(1), "{:?}", ended.printed());
    ended.assert_printed("test hangs ... FAILED");
    ended.assert_printed("---- hangs ----");
    ended.assert_printed("it has run for 1 s; running: hangs");
}
