//! Reads the output of test programs, and checks that each announced test has one result.

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
    /// The number of tests that it announced.
    announced: usize,
}

/// Reads the output of one or more test programs while they run.
#[derive(Debug)]
pub(crate) struct Harness<'totals> {
    totals: &'totals mut Totals,
    /// The name of the step, for failures of the output itself.
    step: &'totals str,
    /// A prefix for each test's name.
    prefix: &'totals str,
    program: Option<Program>,
    /// Expected skips that have not been seen.
    skips: Skips,
    /// The number of announced results that are missing; `None` before a program's first
    /// announcement.
    missing: Option<usize>,
    /// The names of the results since the last announcement.
    names: HashSet<String>,
    counted: usize,
    failed_before: usize,
    partial_line: Vec<u8>,
    /// The test whose reason to fail is being read.
    explained: Option<String>,
    /// All other output.
    other_output: String,
}

impl<'totals> Harness<'totals> {
    /// Counts results for this step; `prefix` goes before each test's name.
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
            missing: None,
            names: HashSet::new(),
            counted: 0,
            failed_before,
            partial_line: Vec::new(),
            explained: None,
            other_output: String::new(),
        }
    }

    /// Sets which skips are expected.
    pub(crate) fn expect(mut self, skips: Skips) -> Self {
        self.skips = skips;
        self
    }

    /// Reads more output, which may begin and end within a line.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.partial_line.extend_from_slice(bytes);
        while let Some(end) = self.partial_line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial_line.drain(..=end).collect();
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    fn line(&mut self, text: &str) {
        let line = Line::parse(text);
        if line != Line::Other {
            self.explained = None;
        }
        match line {
            Line::Program(name) => {
                self.close_program();
                self.program = Some(Program {
                    name: name.to_owned(),
                    began: Instant::now(),
                    announced: 0,
                });
                self.other_output += text;
            }
            Line::Running(tests) => {
                self.close_results();
                self.missing = Some(tests);
                if let Some(program) = &mut self.program {
                    program.announced += tests;
                }
            }
            Line::Test { name, outcome } => self.result(name, &outcome),
            Line::Took { name, time } => {
                let name = self.named(self.prefix, name);
                self.totals.record_time(&name, time);
            }
            Line::Reason(name) => self.explained = Some(self.named(self.prefix, name)),
            Line::Failures => {}
            Line::Other => match &self.explained {
                Some(name) => self.totals.explain(name, text),
                None => self.other_output += text,
            },
        }
    }

    /// Counts a result. A result that was not announced, or a second result of a test, is a
    /// failure.
    fn result(&mut self, name: &str, outcome: &Outcome) {
        let name = self.named(self.prefix, name);
        self.counted += 1;
        match self.missing {
            None | Some(0) => return self.totals.fail(&name, "this test was not announced"),
            Some(missing) => self.missing = Some(missing - 1),
        }
        if !self.names.insert(name.clone()) {
            return self.totals.fail(&name, "this test has a result already");
        }
        let expected = match outcome {
            Outcome::Skipped(reason) => self.skips.take(&name, reason.as_deref()),
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

    /// Ends a program. It is a failure if the program has no test, or if results are missing.
    fn close_program(&mut self) {
        self.close_results();
        self.missing = None;
        let Some(program) = &self.program else { return };
        let (time, empty) = (program.began.elapsed(), program.announced == 0);
        if empty {
            let name = self.named(self.step, "results");
            self.totals.fail(&name, "the program has no test");
        }
        let name = self.named(self.prefix, "");
        self.totals.record_time(&name, time);
    }

    fn close_results(&mut self) {
        self.names.clear();
        if let Some(missing @ 1..) = self.missing.take() {
            let reason = format!("{missing} announced tests have no result");
            let name = self.named(self.step, "results");
            self.totals.fail(&name, &reason);
        }
    }

    fn close_skips(&mut self) {
        for (name, error) in self.skips.missing() {
            self.totals.fail(name, &error);
        }
    }

    /// Ends the output; `end` is how the program ended. Returns whether anything failed; if so,
    /// prints the other output.
    pub(crate) fn close(mut self, end: anyhow::Result<()>) -> bool {
        self.read(b"\n");
        self.close_program();
        self.close_skips();
        let own_failures = self.totals.failed() - self.failed_before;
        match end {
            // The failed tests are the reason for the exit code.
            Err(error) if own_failures == 0 || !error.is::<NonZeroExit>() => {
                self.totals
                    .fail(&self.named(self.step, "end"), &format!("{error:#}"));
            }
            Ok(()) if self.counted == 0 => {
                self.totals
                    .fail(&self.named(self.step, "results"), "no test ran");
            }
            _ => {}
        }
        let failed = self.totals.failed() > self.failed_before;
        if failed {
            println!("{}", self.other_output.trim_end());
        }
        failed
    }
}

/// A test program exited with a code other than 0, as it does if a test failed.
#[derive(Debug)]
pub(crate) struct NonZeroExit(pub(crate) String);

impl std::fmt::Display for NonZeroExit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the test program ended with {}", self.0)
    }
}

impl std::error::Error for NonZeroExit {}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(output: &str, end: anyhow::Result<()>) -> String {
        expecting(&[], output, end)
    }

    /// The same, with these skips expected for the reason `x`.
    fn expecting(skips: &[&str], output: &str, end: anyhow::Result<()>) -> String {
        let skips = skips
            .iter()
            .map(|name| ((*name).to_owned(), "x".to_owned()));
        let skips = Skips::Listed(skips.collect());
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "").expect(skips);
        // In pieces that end within lines.
        for piece in output.as_bytes().chunks(7) {
            harness.read(piece);
        }
        harness.close(end);
        totals.to_string()
    }

    fn non_zero_exit() -> anyhow::Result<()> {
        Err(NonZeroExit("exit code 101".to_owned()).into())
    }

    #[test]
    fn results_are_counted() {
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
    fn an_expected_skip_that_is_missing_is_a_failure() {
        let output = "running 1 test\ntest a ... ok\n";
        let counted = expecting(&["a"], output, Ok(()));
        assert_eq!(counted, "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_failed_test_is_one_failure() {
        let output = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n";
        assert_eq!(
            totals(output, non_zero_exit()),
            "1 passed, 1 failed, 0 skipped"
        );
    }

    #[test]
    fn a_failure_keeps_the_reason_that_follows_the_results() {
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "first");
        harness.read(b"running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n");
        harness.read(b"---- b stdout ----\nit broke\n\nfailures:\n    b\n\n");
        harness.close(non_zero_exit());
        assert_eq!(totals.last_reason(), Some("it broke\n\n"));
    }

    #[test]
    fn missing_results_are_a_failure() {
        let output = "running 2 tests\ntest a ... ok\n";
        assert_eq!(totals(output, Ok(())), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_lost_guest_counts_as_one_more_failure() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n";
        let lost = Err(anyhow::anyhow!("kernel panic"));
        assert_eq!(totals(output, lost), "1 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn an_unannounced_result_is_a_failure() {
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
    fn a_program_may_announce_its_tests_in_several_lines() {
        let output = "   Doc-tests one\nrunning 0 tests\nrunning 1 test\ntest a ... ok\n\
                      running 1 test\ntest a ... ok\n";
        assert_eq!(totals(output, Ok(())), "2 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn times_are_recorded() {
        let mut totals = Totals::default();
        let mut harness = Harness::new(&mut totals, "guest/new", "");
        harness.read(b"running 1 test\ntest a ... ok\ntook 1.500 s a\n");
        assert!(!harness.close(Ok(())));
        assert_eq!(
            totals.times().to_string(),
            "  seconds  slowest tests\n      1.5  a\n"
        );
    }

    #[test]
    fn output_without_a_test_is_a_failure() {
        assert_eq!(
            totals("running 0 tests\n", Ok(())),
            "0 passed, 1 failed, 0 skipped"
        );
        assert_eq!(totals("", non_zero_exit()), "0 passed, 1 failed, 0 skipped");
    }
}
