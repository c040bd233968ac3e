//! Scheduling and timing of tests.

use std::any::Any;
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};

pub(crate) mod watchdog;

/// A test's share of the guest. Tests begin in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// It mostly waits for a timeout of the kernel and uses hardly any processor time.
    Waiting,
    /// It uses one processor.
    Shared,
    /// It measures time while it waits, so it needs an idle guest. Tests of this kind
    /// run beside each other.
    Quiet,
    /// It needs the whole guest.
    Alone,
}

/// A test, and its share of the guest.
pub(crate) struct Planned {
    when: When,
    trial: Trial,
}

impl Planned {
    /// A test that waits for its turn and is timed.
    pub(crate) fn new<F>(name: String, when: When, run: F) -> Self
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        let measured = name.clone();
        let trial = Trial::test(name, move || {
            let _turn = Turn::take(when);
            let clock = Clock::start(measured);
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                let reason = reason(panic.as_ref());
                // Printed at once: the end of a long output may be cut off.
                eprintln!("failed {}: {reason}", clock.name);
                Err(reason.into())
            })
        });
        Self { when, trial }
    }

    /// A test that is skipped, and the reason.
    pub(crate) fn skipped(name: String, reason: &'static str) -> Self {
        let skipped = move || Ok(Completion::ignored_with(reason));
        Self {
            when: When::Shared,
            trial: Trial::ignorable_test(name, skipped),
        }
    }
}

thread_local! {
    /// Where this thread panicked last.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the place of each panic, which is not part of what is caught.
pub(crate) fn record_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        PANICKED_AT.with_borrow_mut(|last| *last = place.unwrap_or_default());
        print(panic);
    }));
}

/// Where and why a test panicked, on one line.
fn reason(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message").replace('\n', " | ");
    PANICKED_AT.with_borrow(|place| format!("{place}: {text}"))
}

/// Orders the tests, and returns the number of threads: waiting tests have threads of
/// their own.
pub(crate) fn plan(mut tests: Vec<Planned>) -> (Vec<Trial>, usize) {
    tests.sort_by_key(|test| test.when);
    let waits = |test: &&Planned| matches!(test.when, When::Waiting | When::Quiet);
    let threads = at_once() + tests.iter().filter(waits).count();
    (tests.into_iter().map(|test| test.trial).collect(), threads)
}

/// The number of tests at a time: one more than there are processors, because each
/// waits now and then for its peer or the kernel.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + 1
}

/// A test's turn in the guest. A failed test leaves no state behind that matters.
struct Turn(When);

/// The number of running tests of each kind.
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

/// Times a test, however it ends.
struct Clock {
    name: String,
}

static TIMES: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

impl Clock {
    fn start(name: String) -> Self {
        watchdog::begins(name.clone());
        Self { name }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let time = watchdog::ends(&name);
        lock(&TIMES).push((name, time));
    }
}

/// Prints the time of each test, a line for each, when no other lines are printed.
pub(crate) fn print_times() {
    for (name, time) in lock(&TIMES).iter() {
        println!("took {:.3} s {name}", time.as_secs_f64());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
