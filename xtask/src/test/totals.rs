//! The results of a run.

use std::fmt;
use std::time::{Duration, Instant};

use crate::test::lines::Outcome;
use crate::test::times::Times;

/// The counts, failures and times of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    passed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    times: Times,
}

/// A test that failed, and the reason if it is known.
#[derive(Clone, Debug)]
struct Failure {
    name: String,
    reason: String,
}

impl Totals {
    /// Prints and counts a result.
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

    /// Prints and counts a failure with its reason.
    pub(crate) fn fail(&mut self, name: &str, reason: &str) {
        println!("test {name} ... FAILED");
        self.failures.push(Failure {
            name: name.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// Adds a line to the reason of a failure that was counted before.
    pub(crate) fn explain(&mut self, name: &str, line: &str) {
        let mut latest = self.failures.iter_mut().rev();
        if let Some(failure) = latest.find(|failure| failure.name == name) {
            failure.reason += line;
        }
    }

    /// Counts the result of a step as one test.
    pub(crate) fn step(&mut self, name: &str, result: anyhow::Result<()>) {
        match result {
            Ok(()) => self.add(name, &Outcome::Passed),
            Err(error) => self.fail(name, &format!("{error:#}")),
        }
    }

    /// Runs a step that counts as one test, and measures its time.
    pub(crate) fn measure(&mut self, name: &str, step: impl FnOnce() -> anyhow::Result<()>) {
        let began = Instant::now();
        let result = step();
        self.record_time(name, began.elapsed());
        self.step(name, result);
    }

    /// Runs a phase, which may count any number of tests, and measures its time.
    pub(crate) fn phase<T>(&mut self, name: &str, phase: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let result = phase(self);
        self.times.add_phase(name, began.elapsed());
        result
    }

    /// Adds the results of another run.
    pub(crate) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.times.merge(other.times);
    }

    /// Records how long a test took.
    pub(crate) fn record_time(&mut self, name: &str, time: Duration) {
        self.times.add_test(name, time);
    }

    /// The times.
    pub(crate) const fn times(&self) -> &Times {
        &self.times
    }

    /// The reason of the latest failure.
    #[cfg(test)]
    pub(crate) fn last_reason(&self) -> Option<&str> {
        self.failures.last().map(|failure| failure.reason.as_str())
    }

    /// The number of tests that passed.
    pub(crate) const fn passed(&self) -> usize {
        self.passed
    }

    /// The number of tests that failed.
    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// Prints all failures with their reasons, at the end of a run.
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
        totals.merge(totals.clone());
        assert_eq!(totals.to_string(), "4 passed, 4 failed, 2 skipped");
    }
}
