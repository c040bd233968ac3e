//! When each test runs, and how long it takes.

use std::any::Any;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed, Trial};

/// What a test needs of the guest. The order is that in which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// Hardly any of its processors: it waits, mostly for a timeout of the kernel.
    Waiting,
    /// One of its processors.
    Shared,
    /// A guest where nobody works, so that it may measure time while it waits. Others like
    /// it do not disturb it.
    Quiet,
    /// All of it.
    Alone,
}

/// A test, and when it runs.
pub(crate) struct Planned {
    when: When,
    trial: Trial,
}

impl Planned {
    /// A test that waits for its turn and is measured.
    pub(crate) fn new<F>(name: String, when: When, run: F) -> Self
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        let measured = name.clone();
        let trial = Trial::test(name, move || {
            let _turn = Turn::take(when);
            let clock = Clock::start(measured);
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                // At once: the end of a long output may be cut off.
                println!("failed {}: {}", clock.name, reason(panic.as_ref()));
                resume_unwind(panic)
            })
        });
        Self { when, trial }
    }

    /// One that cannot run, and why.
    pub(crate) fn skipped(name: String, reason: &'static str) -> Self {
        let skipped = move || Ok(Completion::ignored_with(reason));
        Self {
            when: When::Shared,
            trial: Trial::ignorable_test(name, skipped),
        }
    }
}

/// Why a test panicked, on one line.
fn reason(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").replace('\n', " | ")
}

/// In the order in which they begin, and on how many threads: whoever waits takes none
/// from the others.
pub(crate) fn plan(mut tests: Vec<Planned>) -> (Vec<Trial>, usize) {
    tests.sort_by_key(|test| test.when);
    let waits = |test: &&Planned| matches!(test.when, When::Waiting | When::Quiet);
    let threads = at_once() + tests.iter().filter(waits).count();
    (tests.into_iter().map(|test| test.trial).collect(), threads)
}

/// As many as share the guest at the same time: one more than it has processors, for each
/// waits now and then for its peer or the kernel.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + 1
}

/// A test's turn in the guest. A test that failed in its turn leaves nothing to be
/// careful about.
struct Turn(When);

/// How many have their turn, of each kind.
struct Turns {
    waiting: usize,
    shared: usize,
    quiet: usize,
    alone: usize,
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    waiting: 0,
    shared: 0,
    quiet: 0,
    alone: 0,
});
static ONE_IS_OVER: Condvar = Condvar::new();

impl Turns {
    fn has_room_for(&self, when: When) -> bool {
        let nobody_works = self.waiting + self.shared == 0;
        self.alone == 0
            && match when {
                When::Waiting => self.quiet == 0,
                When::Shared => self.quiet == 0 && self.shared < at_once(),
                When::Quiet => nobody_works,
                When::Alone => nobody_works && self.quiet == 0,
            }
    }

    fn of(&mut self, when: When) -> &mut usize {
        match when {
            When::Waiting => &mut self.waiting,
            When::Shared => &mut self.shared,
            When::Quiet => &mut self.quiet,
            When::Alone => &mut self.alone,
        }
    }
}

impl Turn {
    fn take(when: When) -> Self {
        let turns = ONE_IS_OVER.wait_while(lock(&TURNS), |turns| !turns.has_room_for(when));
        *turns.unwrap_or_else(PoisonError::into_inner).of(when) += 1;
        Self(when)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&TURNS).of(self.0) -= 1;
        ONE_IS_OVER.notify_all();
    }
}

/// Measures one test, however it ends.
struct Clock {
    name: String,
    began: Instant,
}

static TIMES: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

impl Clock {
    fn start(name: String) -> Self {
        let began = Instant::now();
        Self { name, began }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        lock(&TIMES).push((name, self.began.elapsed()));
    }
}

/// Prints how long each test took: a line for each, when no others are printed.
pub(crate) fn print_times() {
    for (name, time) in lock(&TIMES).iter() {
        println!("took {:.3} s {name}", time.as_secs_f64());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
