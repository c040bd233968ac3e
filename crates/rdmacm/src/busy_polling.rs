//! Polling for a moment before sleeping.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long a thread polls by default: longer than a round trip takes, also of a device in
/// software on an emulated machine.
const THREAD_BUSY_POLL: Duration = Duration::from_micros(500);

/// The longest time: a caller that polls reads no events, such as that of the end of its connection.
const MAX_BUSY_POLL: Duration = Duration::from_secs(1);

/// How many waits in a row poll in vain before the next ones sleep at once.
const MAX_MISSES: u32 = 2;
/// How many waits sleep at once, at most, before one polls again.
const MAX_SKIPPED: u32 = 64;
/// How many checks come before the first system call: what is about to come needs none.
const PAUSES: u32 = 1;
/// After how many more checks come a poll in any case, and a check of the clock: others may have
/// the processor for a while between two checks.
const CHECKS_PER_POLL: u32 = 16;

/// How long a caller polls before it sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BusyPollTime(Option<Duration>);

impl BusyPollTime {
    /// The same for threads and tasks.
    pub(crate) fn new(time: Duration) -> Self {
        Self(Some(time.min(MAX_BUSY_POLL)))
    }

    /// Of a thread.
    pub(crate) fn of_thread(self) -> Duration {
        self.0.unwrap_or(THREAD_BUSY_POLL)
    }

    /// Of a task, which keeps the others of its thread waiting: none, unless it was asked for.
    pub(crate) fn of_task(self) -> Duration {
        self.0.unwrap_or_default()
    }
}

/// Whether polling before sleeping is worth it on a connection.
///
/// Callers that poll at the same time may lose count, which does no harm.
#[derive(Debug, Default)]
pub(crate) struct BusyPolling {
    /// The waits that polled in vain since the last that did not.
    misses: AtomicU32,
    /// How many of the next waits sleep at once.
    skips: AtomicU32,
}

impl BusyPolling {
    /// Polls until there is something, for `time` and one round of checks at most, and not after
    /// `is_over`, for a caller who has checked just now. Between two polls it checks whether
    /// something has come, which costs less, and need not find all that a poll finds: `watch`
    /// returns what checks until the next poll.
    pub(crate) fn poll<T, L: Fn() -> bool>(
        &self,
        time: Duration,
        is_over: impl Fn() -> bool,
        watch: impl Fn() -> L,
        mut poll: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if time.is_zero() || is_over() || self.skips() {
            return None;
        }
        let mut watched = watch();
        let mut has_come = check(&watched, PAUSES, pause);
        // For what comes during the first checks the clock is not read.
        let mut end = None;
        loop {
            if !has_come {
                check(&watched, CHECKS_PER_POLL, give_way);
            }
            let polled = poll();
            if polled.is_some() {
                self.misses.store(0, Ordering::Relaxed);
                return polled;
            }
            if is_over() {
                return None;
            }
            let now = Instant::now();
            match end {
                None => end = now.checked_add(time),
                Some(end) if now >= end => {
                    self.missed();
                    return None;
                }
                Some(_) => {}
            }
            (watched, has_come) = (watch(), false);
        }
    }

    /// Whether this wait sleeps at once.
    fn skips(&self) -> bool {
        let skips = self.skips.load(Ordering::Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Ordering::Relaxed);
        }
        skips > 0
    }

    /// After some waits in vain, twice as many waits as before sleep at once.
    fn missed(&self) {
        let misses = self.misses.load(Ordering::Relaxed).saturating_add(1);
        self.misses.store(misses, Ordering::Relaxed);
        if let Some(more) = misses.checked_sub(MAX_MISSES) {
            let skips = 1_u32.checked_shl(more).unwrap_or(MAX_SKIPPED);
            self.skips.store(skips.min(MAX_SKIPPED), Ordering::Relaxed);
        }
    }
}

/// Checks as often as this, with a pause before each; returns whether something has come.
#[inline]
fn check(has_come: impl Fn() -> bool, checks: u32, pause: impl Fn()) -> bool {
    for _ in 0..checks {
        pause();
        if has_come() {
            return true;
        }
    }
    false
}

/// Gives way to others between two checks: a device in software needs a processor to bring what is
/// awaited. Twice, so that there are half as many checks.
#[inline]
fn give_way() {
    yield_now();
    yield_now();
}

/// Pauses the processor between two checks: others need the bus.
#[inline]
fn pause() {
    // No loop, which costs more than the pauses.
    spin_loop();
    spin_loop();
    spin_loop();
    spin_loop();
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SHORT: Duration = Duration::from_nanos(1);

    /// How many of so many waits poll, if nothing ever comes.
    fn polling_waits(busy: &BusyPolling, waits: u32) -> u32 {
        (0..waits).fold(0, |polling, _| {
            let mut polls = false;
            let none: Option<()> = busy.poll(
                SHORT,
                || false,
                || || true,
                || {
                    polls = true;
                    None
                },
            );
            assert!(none.is_none());
            polling + u32::from(polls)
        })
    }

    #[test]
    fn tasks_poll_only_with_the_option() {
        let time = BusyPollTime::default();
        assert_eq!(time.of_thread(), THREAD_BUSY_POLL);
        assert_eq!(time.of_task(), Duration::ZERO);
        let time = BusyPollTime::new(SHORT);
        assert_eq!((time.of_thread(), time.of_task()), (SHORT, SHORT));
        assert_eq!(BusyPollTime::new(Duration::MAX).of_task(), MAX_BUSY_POLL);
    }

    #[test]
    fn what_comes_is_returned() {
        let busy = BusyPolling::default();
        let mut polls = 0..10;
        let mut poll = || polls.next().filter(|n| *n == 9);
        let polled = busy.poll(Duration::MAX, || false, || || true, &mut poll);
        assert_eq!(polled, Some(9));
    }

    #[test]
    fn polling_in_vain_becomes_rare() {
        let busy = BusyPolling::default();
        assert_eq!(polling_waits(&busy, MAX_MISSES), MAX_MISSES);
        assert!(polling_waits(&busy, 1000) < 30);
        busy.skips.store(0, Ordering::Relaxed);
        assert_eq!(busy.poll(SHORT, || false, || || true, || Some(1)), Some(1));
        assert_eq!(polling_waits(&busy, MAX_MISSES), MAX_MISSES);
    }

    #[test]
    fn what_a_check_does_not_find_is_polled_for() {
        let busy = BusyPolling::default();
        let mut polls = 0..;
        let mut poll = || polls.next().filter(|n| *n == 2);
        let (checks, watches) = (Cell::new(0), Cell::new(0));
        let check = || {
            checks.set(checks.get() + 1);
            false
        };
        // Each poll may have changed where the next comes.
        let watch = || {
            watches.set(watches.get() + 1);
            check
        };
        let polled = busy.poll(Duration::MAX, || false, watch, &mut poll);
        assert_eq!((polled, watches.get()), (Some(2), 3));
        assert_eq!(checks.get(), PAUSES + 3 * CHECKS_PER_POLL);
    }

    #[test]
    fn a_processor_that_is_slow_prolongs_it_by_one_round() {
        let busy = BusyPolling::default();
        let (checks, time) = (Cell::new(0), Duration::from_millis(1));
        let check = || {
            checks.set(checks.get() + 1);
            std::thread::sleep(time);
            false
        };
        assert_eq!(busy.poll(time, || false, || check, || None::<()>), None);
        assert_eq!(checks.get(), PAUSES + 2 * CHECKS_PER_POLL);
    }

    #[test]
    fn no_time_or_the_end_turns_it_off() {
        let busy = BusyPolling::default();
        assert_eq!(
            busy.poll(Duration::ZERO, || false, || || true, || Some(1)),
            None
        );
        let polled = busy.poll(Duration::MAX, || true, || || true, || Some(1));
        assert_eq!(polled, None);
    }
}
