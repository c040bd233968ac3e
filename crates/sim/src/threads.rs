//! What the threads of the process are doing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, gettid};

/// How many times the idle time a thread that has used the fabric may compute.
const USER_FACTOR: u32 = 50;

/// How much processor time counts between two checks, which are about a millisecond apart: the
/// kernel of a virtual machine that is paused charges the pause to the thread that runs.
const MAX_BETWEEN_CHECKS: Duration = Duration::from_millis(5);

/// Threads that have used a fabric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users(BTreeSet<Pid>);

impl Users {
    /// Records the calling thread.
    pub(crate) fn add_this(&mut self) {
        self.0.insert(gettid());
    }
}

/// The time since something last happened on a fabric, as far as one wait has seen.
///
/// It is measured by the processor time of each thread: one that is ready to run and gets
/// no processor is about to act, however long that takes.
#[derive(Debug)]
pub(crate) struct Quiet {
    changes: u64,
    since: Instant,
    computing: BTreeMap<Pid, Computing>,
}

/// How a thread has computed since it was first checked.
#[derive(Clone, Copy, Debug)]
struct Computing {
    /// Its processor time at the last check.
    used: Duration,
    /// How much of it counts.
    counted: Duration,
}

type Times = BTreeMap<Pid, Duration>;

/// What a thread other than the calling one is doing.
#[derive(Clone, Copy, Debug)]
struct ThreadActivity {
    /// It runs, or is about to.
    is_active: bool,
    /// The processor time that it has used; `None` if the kernel does not count it.
    used: Option<Duration>,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        Self {
            changes: u64::MAX,
            since: Instant::now(),
            computing: BTreeMap::new(),
        }
    }

    /// Begins anew if something has happened.
    pub(crate) fn update(&mut self, changes: u64) {
        if changes != self.changes {
            *self = Self {
                changes,
                ..Self::new()
            };
        }
    }

    /// Whether nothing happens any more unless the clock moves: all other threads sleep, or
    /// have computed for the idle time; fifty times as long if they have used the fabric.
    ///
    /// Without `/proc`, it is the idle time by the machine's clock.
    pub(crate) fn is_over(&mut self, users: &Users, idle_time: Duration) -> bool {
        // A thread may wake one that was checked before, and sleep when it is checked
        // itself: one of them has run when they are checked again.
        let checks = [(); 2].map(|()| self.sleeping(users, idle_time));
        match checks {
            [Ok(Some(first)), Ok(Some(second))] => first == second,
            [Err(_), _] | [_, Err(_)] => self.since.elapsed() >= idle_time,
            _ => false,
        }
    }

    /// The threads that sleep, and what they have used; `None` if one is active.
    fn sleeping(&mut self, users: &Users, idle_time: Duration) -> io::Result<Option<Times>> {
        let mut sleeping = Times::new();
        for thread in other_threads()? {
            // One that has ended meanwhile has no file any more.
            let Ok(activity) = read_activity(thread) else {
                continue;
            };
            let factor = if users.0.contains(&thread) {
                USER_FACTOR
            } else {
                1
            };
            if self.computed(thread, activity.used) >= idle_time.saturating_mul(factor) {
                continue;
            }
            if activity.is_active {
                return Ok(None);
            }
            sleeping.insert(thread, activity.used.unwrap_or_default());
        }
        Ok(Some(sleeping))
    }

    /// How long a thread has computed since something happened.
    fn computed(&mut self, thread: Pid, used: Option<Duration>) -> Duration {
        let Some(used) = used else {
            return self.since.elapsed();
        };
        let computing = self.computing.entry(thread).or_insert(Computing {
            used,
            counted: Duration::ZERO,
        });
        let since = used.saturating_sub(computing.used);
        computing.used = used;
        computing.counted += since.min(MAX_BETWEEN_CHECKS);
        computing.counted
    }
}

fn other_threads() -> io::Result<Vec<Pid>> {
    let this = gettid();
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        threads.extend(number.map(Pid::from_raw).filter(|thread| *thread != this));
    }
    Ok(threads)
}

fn read_activity(thread: Pid) -> io::Result<ThreadActivity> {
    let read = |name| fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
    // First, so that a thread that has run since does not seem to sleep all the time.
    let used = read("schedstat").ok();
    let stat = read("stat")?;
    Ok(ThreadActivity {
        is_active: is_active(&stat),
        used: used.as_deref().and_then(processor_time),
    })
}

/// Whether a thread runs, is runnable, or waits for a page or another uninterruptible
/// operation. Its state follows its name, which is in parentheses and may contain anything.
/// Source: `proc_pid_stat(5)`.
fn is_active(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['R', 'D']))
}

/// Nanoseconds, before the time that the thread has waited for a processor. Source:
/// `Documentation/scheduler/sched-stats.rst`.
fn processor_time(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use std::hint::spin_loop;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn states_are_read() {
        assert!(is_active("12 (a thread) R 1 12 12 0"));
        assert!(is_active("12 () S (x)) D 1 12 12 0"));
        assert!(!is_active("12 (R) S 1 12 12 0"));
        assert!(!is_active(""));
    }

    #[test]
    fn processor_times_are_read() {
        let time = processor_time("178374 1236141 2\n");
        assert_eq!(time, Some(Duration::from_nanos(178_374)));
        assert_eq!(processor_time("\n"), None);
    }

    /// Looks at a thread that repeats `work` until `is_reached`.
    fn sample_until(work: fn(), is_reached: impl Fn(ThreadActivity) -> bool) {
        let (sender, receiver) = channel();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                sender.send(gettid()).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    work();
                }
            });
            let thread = receiver.recv().unwrap();
            while !is_reached(read_activity(thread).unwrap()) {
                thread::yield_now();
            }
            is_done.store(true, Ordering::Relaxed);
            worker.thread().unpark();
        });
    }

    #[test]
    fn a_thread_that_computes_is_active() {
        sample_until(spin_loop, |activity| activity.is_active);
        let enough = Duration::from_millis(5);
        sample_until(spin_loop, |activity| {
            activity.used.is_some_and(|used| used > enough)
        });
    }

    #[test]
    fn a_thread_that_sleeps_is_not_active() {
        sample_until(thread::park, |activity| !activity.is_active);
    }

    #[test]
    fn a_thread_that_computes_is_idle_after_its_share() {
        let (second, millisecond) = (Duration::from_secs(1), Duration::from_millis(1));
        let thread = Pid::from_raw(1);
        let mut quiet = Quiet::new();
        quiet.update(1);
        assert_eq!(quiet.computed(thread, Some(second)), Duration::ZERO);
        for checks in 1..=3_u32 {
            quiet.update(1);
            let used = second + checks * millisecond;
            assert_eq!(quiet.computed(thread, Some(used)), checks * millisecond);
        }
        quiet.update(2);
        assert_eq!(quiet.computed(thread, Some(second * 3)), Duration::ZERO);
    }

    #[test]
    fn a_pause_of_the_machine_is_not_computing() {
        let second = Duration::from_secs(1);
        let thread = Pid::from_raw(1);
        let mut quiet = Quiet::new();
        assert_eq!(quiet.computed(thread, Some(second)), Duration::ZERO);
        let after_it = quiet.computed(thread, Some(second * 3));
        assert_eq!(after_it, MAX_BETWEEN_CHECKS);
    }
}
