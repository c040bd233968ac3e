//! When each test runs, and how long it takes.

use std::num::NonZero;
use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed, Trial};

/// What a test needs of the guest. The order is that in which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// Hardly any of its processors: it waits, mostly for a timeout of the kernel.
    Waiting,
    /// One of its processors.
    Shared,
    /// All of it.
    Alone,
}

/// What is in the names of those that mostly wait, for a timeout of the kernel as a rule.
const WAITING: &[&str] = &[
    "acm::half_an_answer",
    "acm::silent",
    "addrinfo::deadlines::",
    "command::ping::a_client_that_is_interrupted_while_it_connects",
    "command::ping::a_message_of_another_length_is_refused_in_words",
    "command::ping::a_ping_beyond_the_limit_is_refused_in_words",
    "command::ping::a_server_with_too_few_pings_parts",
    "command::resolve::one_reached_address_is_success",
    "connection::order::accepting_a_peer_that_has_gone",
    "data::closing::handles_go_in_any_order_afterwards",
    "judge::init_qp_attr_out_of_order",
    "judge::migrate_to_its_own_channel",
    "judge::v6_only",
    "kept::timewait_exit",
    "kept::unanswered",
    "oracle::a_dead_first_name_server_is_waited_out",
    "oracle::we_answer_as_",
    "privilege::a_missing_module_is_explained",
    "privilege::a_missing_node_is_explained",
];

/// A test, and when it runs.
pub(crate) struct Planned {
    when: When,
    trial: Trial,
}

impl Planned {
    /// A test that takes its turn and is measured. One that would share the guest may be
    /// among those that wait.
    pub(crate) fn new<F>(name: String, when: When, run: F) -> Self
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        let waits = WAITING.iter().any(|part| name.contains(part));
        let when = match when {
            When::Shared if waits => When::Waiting,
            when => when,
        };
        let measured = name.clone();
        let trial = Trial::test(name, move || {
            let _turn = Turn::take(when);
            let _clock = Clock::start(measured);
            run()
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

    pub(crate) fn name(&self) -> &str {
        self.trial.name()
    }
}

/// In the order in which they begin, and on how many threads: whoever waits takes none
/// from the others.
pub(crate) fn plan(mut tests: Vec<Planned>) -> (Vec<Trial>, usize) {
    for part in WAITING {
        let is_there = tests.iter().any(|test| test.name().contains(part));
        assert!(is_there, "no test's name has {part} in it");
    }
    tests.sort_by_key(|test| test.when);
    let waiting = tests.iter().filter(|test| test.when == When::Waiting);
    let threads = processors() + waiting.count();
    (tests.into_iter().map(|test| test.trial).collect(), threads)
}

/// As many as work at the same time.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// A test's turn in the guest. A test that failed in its turn leaves nothing to be
/// careful about.
enum Turn {
    Waiting {
        _guest: RwLockReadGuard<'static, ()>,
    },
    Shared {
        _guest: RwLockReadGuard<'static, ()>,
        _processor: Processor,
    },
    Alone {
        _guest: RwLockWriteGuard<'static, ()>,
    },
}

static GUEST: RwLock<()> = RwLock::new(());

impl Turn {
    fn take(when: When) -> Self {
        let shared = || GUEST.read().unwrap_or_else(PoisonError::into_inner);
        match when {
            When::Waiting => Self::Waiting { _guest: shared() },
            When::Shared => Self::Shared {
                _processor: Processor::take(),
                _guest: shared(),
            },
            When::Alone => Self::Alone {
                _guest: GUEST.write().unwrap_or_else(PoisonError::into_inner),
            },
        }
    }
}

/// One of the guest's processors, given back when dropped.
struct Processor;

/// How many are taken.
static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

impl Processor {
    fn take() -> Self {
        let all = processors();
        let taken = GIVEN_BACK.wait_while(lock(&TAKEN), |taken| *taken >= all);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        *lock(&TAKEN) -= 1;
        GIVEN_BACK.notify_one();
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
