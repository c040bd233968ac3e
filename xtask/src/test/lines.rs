//! What a test program prints, as Rust's own harness does and libtest-mimic
//! after it, and the times that the guest suite adds.

use std::time::Duration;

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line<'text> {
    /// `running 3 tests`: so many results follow.
    Running(usize),
    /// `test NAME ... RESULT`
    Test { name: &'text str, outcome: Outcome },
    /// `took 1.234 s NAME`: how long a test ran.
    Took { name: &'text str, time: Duration },
    /// cargo starts a test program; its name.
    Program(&'text str),
    /// Anything else.
    Other,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed.
    Passed,
    /// It did not.
    Failed,
    /// It did not run, and why, where the test says so.
    Skipped(Option<String>),
}

impl<'text> Line<'text> {
    /// Reads a line.
    pub(crate) fn of(text: &'text str) -> Self {
        let text = text.trim_end();
        running(text)
            .or_else(|| test(text))
            .or_else(|| program(text))
            .or_else(|| took(text))
            .unwrap_or(Self::Other)
    }
}

fn running(text: &str) -> Option<Line<'_>> {
    let (number, noun) = text.strip_prefix("running ")?.split_once(' ')?;
    matches!(noun, "test" | "tests").then_some(Line::Running(number.parse().ok()?))
}

fn test(text: &str) -> Option<Line<'_>> {
    // A name may hold dots itself, a reason as well: the last that fits.
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
        // Rust's own harness sets the reason off in one way, libtest-mimic in
        // another.
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
        match Line::of(text) {
            Line::Test { name, outcome } => Some((name, outcome)),
            _ => None,
        }
    }

    #[test]
    fn results_are_read() {
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
    fn what_only_looks_like_a_result_is_none() {
        for text in [
            "test result: ok. 3 passed; 0 failed",
            "testing ... ok",
            "test a ... okay",
        ] {
            assert_eq!(result(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_read() {
        assert_eq!(Line::of("running 1 test"), Line::Running(1));
        assert_eq!(Line::of("running 0 tests"), Line::Running(0));
        assert_eq!(Line::of("running late"), Line::Other);
    }

    #[test]
    fn times_are_read() {
        let took = Line::Took {
            name: "new/rxe/a::b",
            time: Duration::from_millis(12_340),
        };
        assert_eq!(Line::of("took 12.340 s new/rxe/a::b\n"), took);
        for text in ["took long", "took -1 s a", "took NaN s a", "took 1 m a"] {
            assert_eq!(Line::of(text), Line::Other, "{text}");
        }
    }

    #[test]
    fn programs_are_named() {
        let line = "     Running unittests src/lib.rs (target/debug/deps/rdmacm_core-0123abcd)";
        assert_eq!(Line::of(line), Line::Program("rdmacm_core"));
        let line = "     Running tests/no_device.rs (/t/debug/deps/no_device-0123abcd)";
        assert_eq!(Line::of(line), Line::Program("no_device"));
        assert_eq!(Line::of("   Doc-tests rdmacm"), Line::Program("rdmacm"));
    }
}
