//! Which schedules are tried.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Of each kind.
const SCHEDULES: usize = 1000;
/// How often a schedule departs from the threads' priorities: most failures need two or
/// three switches at certain points.
const SWITCHES: usize = 3;

/// Runs a test with random schedules, and with those that prefer some threads.
pub(crate) fn check(test: fn()) {
    let mut config = Config::new();
    // Threads of the library need more than 32 KiB.
    config.stack_size = 256 * 1024;
    Runner::new(RandomScheduler::new(SCHEDULES), config.clone()).run(test);
    Runner::new(PctScheduler::new(SWITCHES, SCHEDULES), config).run(test);
}
