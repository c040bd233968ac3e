//! Every result of every step, and what they come to.

use std::fmt;
use std::time::{Duration, Instant};

use crate::test::lines::Outcome;
use crate::test::times::Times;

/// The tally of a whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    passed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    times: Times,
}

/// A test that failed, and what is known of why.
#[derive(Clone, Debug)]
struct Failure {
    name: String,
    reason: String,
}

impl Totals {
    /// Prints one result, and counts it.
    pub(crate) fn add(&mut self, name: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => {
                println!("test {name} ... ok");
                self.passed += 1;
            }
            Outcome::Skipped(None) => {
                println!("test {name} ... skipped");
                self.skipped += 1;
            }
            Outcome::Skipped(Some(reason)) => {
                println!("test {name} ... skipped, {reason}");
                self.skipped += 1;
            }
            Outcome::Failed => self.fail(name, ""),
        }
    }

    /// Prints and counts a failure whose reason is known already.
    pub(crate) fn fail(&mut self, name: &str, reason: &str) {
        println!("test {name} ... FAILED");
        self.failures.push(Failure {
            name: name.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// Counts a step that is one test.
    pub(crate) fn step(&mut self, name: &str, result: anyhow::Result<()>) {
        match result {
            Ok(()) => self.add(name, &Outcome::Passed),
            Err(error) => self.fail(name, &format!("{error:#}")),
        }
    }

    /// Runs a step that is one test, counts it and measures it.
    pub(crate) fn measure(&mut self, name: &str, step: impl FnOnce() -> anyhow::Result<()>) {
        let began = Instant::now();
        let result = step();
        self.took(name, began.elapsed());
        self.step(name, result);
    }

    /// Runs a part of the run, which may count any number of tests, and measures it.
    pub(crate) fn phase<T>(&mut self, name: &str, phase: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let result = phase(self);
        self.times.add_phase(name, began.elapsed());
        result
    }

    /// Counts all that another tally has.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.times.absorb(other.times);
    }

    /// How long a test took.
    pub(crate) fn took(&mut self, name: &str, time: Duration) {
        self.times.add_test(name, time);
    }

    /// Where the run's time went.
    pub(crate) const fn times(&self) -> &Times {
        &self.times
    }

    /// How many passed.
    pub(crate) const fn passed(&self) -> usize {
        self.passed
    }

    /// How many failed.
    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// All failures once more, for the end of a long run.
    pub(crate) fn print_failures(&self) {
        for Failure { name, reason } in &self.failures {
            println!("\nFAILED: {name}");
            for line in reason.lines() {
                println!("  {line}");
            }
        }
        println!();
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            skipped,
            failures,
            ..
        } = self;
        write!(
            formatter,
            "{passed} passed, {} failed, {skipped} skipped",
            failures.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_is_counted_once() {
        let mut totals = Totals::default();
        totals.add("a", &Outcome::Passed);
        totals.add("b", &Outcome::Failed);
        totals.add("c", &Outcome::Skipped(Some("no device".to_owned())));
        totals.step("d", Ok(()));
        totals.step("e", Err(anyhow::anyhow!("no")));
        assert_eq!(totals.to_string(), "2 passed, 2 failed, 1 skipped");
        assert_eq!(totals.failed(), 2);
        totals.absorb(totals.clone());
        assert_eq!(totals.to_string(), "4 passed, 4 failed, 2 skipped");
    }
}
