//! Parses the output of test programs: the lines of libtest and libtest-mimic, and the times
//! that the guest suite adds.

use std::time::Duration;

/// A line of a test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line<'text> {
    /// `running 3 tests`: the number of results that follow.
    Running(usize),
    /// `test NAME ... RESULT`
    Test { name: &'text str, outcome: Outcome },
    /// `took 1.234 s NAME`: how long a test ran.
    Took { name: &'text str, time: Duration },
    /// `---- NAME ----` or `---- NAME stdout ----`: why this test failed follows.
    Reason(&'text str),
    /// `failures:`: the names of the tests that failed follow.
    Failures,
    /// cargo starts a test program of this name.
    Program(&'text str),
    /// Anything else.
    Other,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It did not run, with the reason if the test has one.
    Skipped(Option<String>),
}

impl<'text> Line<'text> {
    /// Parses a line.
    pub(crate) fn parse(text: &'text str) -> Self {
        let text = text.trim_end();
        running(text)
            .or_else(|| test(text))
            .or_else(|| program(text))
            .or_else(|| took(text))
            .or_else(|| reason(text))
            .unwrap_or(Self::Other)
    }
}

fn running(text: &str) -> Option<Line<'_>> {
    let (number, noun) = text.strip_prefix("running ")?.split_once(' ')?;
    matches!(noun, "test" | "tests").then_some(Line::Running(number.parse().ok()?))
}

fn test(text: &str) -> Option<Line<'_>> {
    // A name or a reason may contain dots as well: take the last match.
    let rest = text.strip_prefix("test ")?;
    rest.rmatch_indices(" ... ").find_map(|(at, dots)| {
        let outcome = outcome(&rest[at + dots.len()..])?;
        Some(Line::Test {
            name: rest[..at].trim(),
            outcome,
        })
    })
}

fn outcome(text: &str) -> Option<Outcome> {
    match text {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        "ignored" => Some(Outcome::Skipped(None)),
        // libtest and libtest-mimic print the reason differently.
        _ => text
            .strip_prefix("ignored, ")
            .or_else(|| text.strip_prefix("ignored (")?.strip_suffix(')'))
            .map(|reason| Outcome::Skipped(Some(reason.to_owned()))),
    }
}

fn took(text: &str) -> Option<Line<'_>> {
    let (seconds, name) = text.strip_prefix("took ")?.split_once(" s ")?;
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some(Line::Took { name, time })
}

fn reason(text: &str) -> Option<Line<'_>> {
    if text == "failures:" {
        return Some(Line::Failures);
    }
    let name = text.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(Line::Reason(name.strip_suffix(" stdout").unwrap_or(name)))
}

/// `Running unittests src/lib.rs (target/debug/deps/NAME-0123456789abcdef)` or
/// `Doc-tests NAME`.
fn program(text: &str) -> Option<Line<'_>> {
    let text = text.trim_start();
    if let Some(name) = text.strip_prefix("Doc-tests ") {
        return Some(Line::Program(name));
    }
    let path = text
        .strip_prefix("Running ")?
        .strip_suffix(')')?
        .rsplit_once('(')?
        .1;
    let file = path.rsplit('/').next()?;
    Some(Line::Program(
        file.rsplit_once('-').map_or(file, |(name, _)| name),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> Option<(&str, Outcome)> {
        match Line::parse(text) {
            Line::Test { name, outcome } => Some((name, outcome)),
            _ => None,
        }
    }

    #[test]
    fn result_lines_are_parsed() {
        assert_eq!(result("test a::b ... ok"), Some(("a::b", Outcome::Passed)));
        assert_eq!(
            result("test a    ... FAILED\n"),
            Some(("a", Outcome::Failed))
        );
        assert_eq!(
            result("test new/rxe/bind::wildcard ... ignored, no ... device"),
            Some((
                "new/rxe/bind::wildcard",
                Outcome::Skipped(Some("no ... device".to_owned()))
            ))
        );
        assert_eq!(
            result("test new/siw/a    ... ignored (siw connects (so far) nothing)"),
            Some((
                "new/siw/a",
                Outcome::Skipped(Some("siw connects (so far) nothing".to_owned()))
            ))
        );
        assert_eq!(
            result("test src/lib.rs - Id (line 3) - compile fail ... ignored"),
            Some((
                "src/lib.rs - Id (line 3) - compile fail",
                Outcome::Skipped(None)
            ))
        );
    }

    #[test]
    fn similar_lines_are_not_results() {
        for text in [
            "test result: ok. 3 passed; 0 failed",
            "testing ... ok",
            "test a ... okay",
        ] {
            assert_eq!(result(text), None, "{text}");
        }
    }

    #[test]
    fn announcements_are_parsed() {
        assert_eq!(Line::parse("running 1 test"), Line::Running(1));
        assert_eq!(Line::parse("running 0 tests"), Line::Running(0));
        assert_eq!(Line::parse("running late"), Line::Other);
    }

    #[test]
    fn times_are_parsed() {
        let took = Line::Took {
            name: "new/rxe/a::b",
            time: Duration::from_millis(12_340),
        };
        assert_eq!(Line::parse("took 12.340 s new/rxe/a::b\n"), took);
        for text in ["took long", "took -1 s a", "took NaN s a", "took 1 m a"] {
            assert_eq!(Line::parse(text), Line::Other, "{text}");
        }
    }

    #[test]
    fn headings_of_reasons_are_parsed() {
        for text in ["---- new/a::b ----\n", "---- new/a::b stdout ----\n"] {
            assert_eq!(Line::parse(text), Line::Reason("new/a::b"), "{text}");
        }
        assert_eq!(Line::parse("failures:\n"), Line::Failures);
        assert_eq!(Line::parse("---- new/a::b"), Line::Other);
    }

    #[test]
    fn program_names_are_parsed() {
        let line = "     Running unittests src/lib.rs (target/debug/deps/rdmacm_core-0123abcd)";
        assert_eq!(Line::parse(line), Line::Program("rdmacm_core"));
        let line = "     Running tests/no_device.rs (/t/debug/deps/no_device-0123abcd)";
        assert_eq!(Line::parse(line), Line::Program("no_device"));
        assert_eq!(Line::parse("   Doc-tests rdmacm"), Line::Program("rdmacm"));
    }
}
