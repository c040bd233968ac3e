//! Listening to test programs: a result for each line, and none lost.

use crate::test::lines::Line;
use crate::test::totals::Totals;

/// Follows the output of one or more test programs, as it comes.
#[derive(Debug)]
pub(crate) struct Harness<'totals> {
    totals: &'totals mut Totals,
    /// What its own failures are named after.
    step: &'totals str,
    /// What goes before each test's name.
    prefix: &'totals str,
    program: Option<String>,
    /// Results that were announced and have not come yet.
    awaited: usize,
    counted: usize,
    failed_before: usize,
    rest: Vec<u8>,
    /// What was said beside the results: the reasons of failures.
    said: String,
}

impl<'totals> Harness<'totals> {
    /// Results count for this step; `prefix` goes before each test's name.
    pub(crate) fn new(
        totals: &'totals mut Totals,
        step: &'totals str,
        prefix: &'totals str,
    ) -> Self {
        let failed_before = totals.failed();
        Self {
            totals,
            step,
            prefix,
            program: None,
            awaited: 0,
            counted: 0,
            failed_before,
            rest: Vec::new(),
            said: String::new(),
        }
    }

    /// Takes output as it comes, in any pieces.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    fn line(&mut self, text: &str) {
        match Line::of(text) {
            Line::Program(name) => {
                self.close_program();
                self.program = Some(name.to_owned());
                self.said += text;
            }
            Line::Running(tests) => {
                self.close_program();
                self.awaited = tests;
            }
            Line::Test { name, outcome } => {
                let name = self.named(self.prefix, name);
                self.totals.add(&name, &outcome);
                self.counted += 1;
                self.awaited = self.awaited.saturating_sub(1);
            }
            Line::Other => self.said += text,
        }
    }

    fn named(&self, first: &str, last: &str) -> String {
        let parts = [first, self.program.as_deref().unwrap_or_default(), last];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/")
    }

    /// A program that ends before all its results came is a failure.
    fn close_program(&mut self) {
        if self.awaited > 0 {
            let reason = format!("{} tests were announced and gave no result", self.awaited);
            let name = self.named(self.step, "results");
            self.totals.fail(&name, &reason);
            self.awaited = 0;
        }
    }

    /// The end, with how the program as a whole ended. When anything failed,
    /// it prints what was said, and answers true.
    pub(crate) fn close(mut self, end: anyhow::Result<()>) -> bool {
        self.take(b"\n");
        self.close_program();
        let own_failures = self.totals.failed() - self.failed_before;
        match end {
            // Its results tell already why it did not end well.
            Err(error) if own_failures == 0 || !error.is::<NotZero>() => {
                self.totals
                    .fail(&self.named(self.step, "end"), &format!("{error:#}"));
            }
            Ok(()) if self.counted == 0 => {
                self.totals
                    .fail(&self.named(self.step, "results"), "not a single test ran");
            }
            _ => {}
        }
        let failed = self.totals.failed() > self.failed_before;
        if failed {
            println!("{}", self.said.trim_end());
        }
        failed
    }
}

/// A test program ended as it does when a test failed.
#[derive(Debug)]
pub(crate) struct NotZero(pub(crate) String);

impl std::fmt::Display for NotZero {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the test program ended with {}", self.0)
    }
}

impl std::error::Error for NotZero {}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(output: &str, end: anyhow::Result<()>) -> String {
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "");
        // In pieces that cut lines.
        for piece in output.as_bytes().chunks(7) {
            harness.take(piece);
        }
        harness.close(end);
        totals.to_string()
    }

    fn not_zero() -> anyhow::Result<()> {
        Err(NotZero("exit code 101".to_owned()).into())
    }

    #[test]
    fn a_run_is_counted() {
        let output = "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... ignored, x\n";
        assert_eq!(totals(output, Ok(())), "2 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_failed_test_is_one_failure() {
        let output = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n";
        assert_eq!(totals(output, not_zero()), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn results_that_never_came_are_a_failure() {
        let output = "running 2 tests\ntest a ... ok\n";
        assert_eq!(totals(output, Ok(())), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_lost_guest_is_a_failure_of_its_own() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n";
        let lost = Err(anyhow::anyhow!("kernel panic"));
        assert_eq!(totals(output, lost), "1 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn no_test_at_all_is_a_failure() {
        assert_eq!(
            totals("running 0 tests\n", Ok(())),
            "0 passed, 1 failed, 0 skipped"
        );
        assert_eq!(totals("", not_zero()), "0 passed, 1 failed, 0 skipped");
    }
}
