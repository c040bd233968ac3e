//! Listening to test programs: a result for each line, and none lost.

use std::collections::HashSet;
use std::time::Instant;

use crate::test::lines::{Line, Outcome};
use crate::test::skips::Skips;
use crate::test::totals::Totals;

/// A test program that cargo started.
#[derive(Debug)]
struct Program {
    name: String,
    began: Instant,
    /// How many tests it announced.
    announced: usize,
}

/// Follows the output of one or more test programs, as it comes.
#[derive(Debug)]
pub(crate) struct Harness<'totals> {
    totals: &'totals mut Totals,
    /// What its own failures are named after.
    step: &'totals str,
    /// What goes before each test's name.
    prefix: &'totals str,
    program: Option<Program>,
    /// Skips that are still expected.
    skips: Skips,
    /// Results that were announced and have not come yet; none before the first
    /// announcement of a program.
    awaited: Option<usize>,
    /// The results of this announcement.
    names: HashSet<String>,
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
            skips: Skips::NONE,
            awaited: None,
            names: HashSet::new(),
            counted: 0,
            failed_before,
            rest: Vec::new(),
            said: String::new(),
        }
    }

    /// Tests may skip themselves, all of these or any.
    pub(crate) fn expect(mut self, skips: Skips) -> Self {
        self.skips = skips;
        self
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
                self.program = Some(Program {
                    name: name.to_owned(),
                    began: Instant::now(),
                    announced: 0,
                });
                self.said += text;
            }
            Line::Running(tests) => {
                self.close_results();
                self.awaited = Some(tests);
                if let Some(program) = &mut self.program {
                    program.announced += tests;
                }
            }
            Line::Test { name, outcome } => self.result(name, &outcome),
            Line::Took { name, time } => {
                let name = self.named(self.prefix, name);
                self.totals.took(&name, time);
            }
            Line::Other => self.said += text,
        }
    }

    /// A result that nobody announced, or one for the second time, is a failure
    /// whatever it says.
    fn result(&mut self, name: &str, outcome: &Outcome) {
        let name = self.named(self.prefix, name);
        self.counted += 1;
        match self.awaited {
            None | Some(0) => return self.totals.fail(&name, "this test was not announced"),
            Some(awaited) => self.awaited = Some(awaited - 1),
        }
        if !self.names.insert(name.clone()) {
            return self.totals.fail(&name, "this test has a result already");
        }
        let expected = match outcome {
            Outcome::Skipped(reason) => self.skips.see(&name, reason.as_deref()),
            Outcome::Passed | Outcome::Failed => Ok(()),
        };
        match expected {
            Ok(()) => self.totals.add(&name, outcome),
            Err(error) => self.totals.fail(&name, &format!("{error:#}")),
        }
    }

    fn named(&self, first: &str, last: &str) -> String {
        let program = self.program.as_ref().map(|program| program.name.as_str());
        [first, program.unwrap_or_default(), last]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/")
    }

    /// A program that ends without a test, or before all its results came, is a
    /// failure.
    fn close_program(&mut self) {
        self.close_results();
        self.awaited = None;
        let Some(program) = &self.program else { return };
        let (time, empty) = (program.began.elapsed(), program.announced == 0);
        if empty {
            let name = self.named(self.step, "results");
            self.totals.fail(&name, "there is no test in it");
        }
        let name = self.named(self.prefix, "");
        self.totals.took(&name, time);
    }

    fn close_results(&mut self) {
        self.names.clear();
        if let Some(missing @ 1..) = self.awaited.take() {
            let reason = format!("{missing} tests were announced and gave no result");
            let name = self.named(self.step, "results");
            self.totals.fail(&name, &reason);
        }
    }

    fn close_skips(&mut self) {
        for (name, complaint) in self.skips.missing() {
            self.totals.fail(name, &complaint);
        }
    }

    /// The end, with how the program as a whole ended. When anything failed,
    /// it prints what was said, and answers true.
    pub(crate) fn close(mut self, end: anyhow::Result<()>) -> bool {
        self.take(b"\n");
        self.close_program();
        self.close_skips();
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
        expecting(&[], output, end)
    }

    /// The same, where these skip themselves because of x.
    fn expecting(skips: &[&str], output: &str, end: anyhow::Result<()>) -> String {
        let skips = skips
            .iter()
            .map(|name| ((*name).to_owned(), "x".to_owned()));
        let skips = Skips::Listed(skips.collect());
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "").expect(skips);
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
        let counted = expecting(&["c"], output, Ok(()));
        assert_eq!(counted, "2 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_skip_that_is_not_expected_is_a_failure() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... ignored, x\n";
        assert_eq!(totals(output, Ok(())), "1 passed, 1 failed, 0 skipped");
        let output = output.replace('x', "y");
        let counted = expecting(&["b"], &output, Ok(()));
        assert_eq!(counted, "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_skip_that_did_not_come_is_a_failure() {
        let output = "running 1 test\ntest a ... ok\n";
        let counted = expecting(&["a"], output, Ok(()));
        assert_eq!(counted, "1 passed, 1 failed, 0 skipped");
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
    fn a_result_that_nobody_announced_is_a_failure() {
        let output = "running 1 test\ntest a ... ok\ntest b ... ok\n";
        assert_eq!(totals(output, Ok(())), "1 passed, 1 failed, 0 skipped");
        assert_eq!(
            totals("test a ... ok\n", Ok(())),
            "0 passed, 1 failed, 0 skipped"
        );
    }

    #[test]
    fn a_second_result_of_a_test_is_a_failure() {
        let output = "running 2 tests\ntest a ... ok\ntest a ... ok\n";
        assert_eq!(totals(output, Ok(())), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_program_without_a_test_is_a_failure() {
        let one = "     Running unittests src/lib.rs (target/debug/deps/one-01)\n\
                   running 1 test\ntest a ... ok\n";
        let none = "     Running unittests src/lib.rs (target/debug/deps/none-01)\n";
        assert_eq!(totals(one, Ok(())), "1 passed, 0 failed, 0 skipped");
        for empty in [none.to_owned(), format!("{none}running 0 tests\n")] {
            for output in [format!("{one}{empty}"), format!("{empty}{one}")] {
                assert_eq!(totals(&output, Ok(())), "1 passed, 1 failed, 0 skipped");
            }
        }
    }

    #[test]
    fn doc_tests_may_be_announced_in_parts() {
        let output = "   Doc-tests one\nrunning 0 tests\nrunning 1 test\ntest a ... ok\n\
                      running 1 test\ntest a ... ok\n";
        assert_eq!(totals(output, Ok(())), "2 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn times_are_kept() {
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "");
        harness.take(b"running 1 test\ntest a ... ok\ntook 1.500 s a\n");
        assert!(!harness.close(Ok(())));
        assert_eq!(
            totals.times().to_string(),
            "  seconds  slowest tests\n      1.5  a\n"
        );
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
