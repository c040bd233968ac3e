//! How long the phases and the tests of a run took.

use std::fmt;
use std::time::Duration;

/// The number of tests in the table.
const SLOWEST: usize = 20;

/// The times of phases and of single tests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// In the order in which they ended.
    phases: Vec<(String, Duration)>,
    tests: Vec<(String, Duration)>,
}

impl Times {
    pub(super) fn add_phase(&mut self, name: &str, time: Duration) {
        self.phases.push((name.to_owned(), time));
    }

    pub(super) fn add_test(&mut self, name: &str, time: Duration) {
        self.tests.push((name.to_owned(), time));
    }

    /// Appends the times of another run.
    pub(super) fn merge(&mut self, other: Self) {
        self.phases.extend(other.phases);
        self.tests.extend(other.tests);
    }

    /// The slowest tests, in descending order.
    fn slowest(&self) -> Vec<&(String, Duration)> {
        let mut tests: Vec<_> = self.tests.iter().collect();
        tests.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        tests.truncate(SLOWEST);
        tests
    }
}

impl fmt::Display for Times {
    /// A table of the phases and one of the slowest tests. An empty table is left out.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases: Vec<_> = self.phases.iter().collect();
        for (title, rows) in [("phase", phases), ("slowest tests", self.slowest())] {
            if rows.is_empty() {
                continue;
            }
            writeln!(formatter, "{:>9}  {title}", "seconds")?;
            for (name, time) in rows {
                writeln!(formatter, "{:>9.1}  {name}", time.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_keep_their_order_and_tests_are_sorted() {
        let mut times = Times::default();
        times.add_phase("host", Duration::from_secs(1));
        times.add_phase("guest/new", Duration::from_millis(2_340));
        times.add_test("quick", Duration::from_millis(100));
        let mut others = Times::default();
        others.add_phase("wire", Duration::from_secs(3));
        others.add_test("slow", Duration::from_secs(61));
        times.merge(others);
        let expected = "  seconds  phase
      1.0  host
      2.3  guest/new
      3.0  wire
  seconds  slowest tests
     61.0  slow
      0.1  quick
";
        assert_eq!(times.to_string(), expected);
    }

    #[test]
    fn at_most_twenty_tests_are_listed() {
        let mut times = Times::default();
        for seconds in 0..30 {
            times.add_test("test", Duration::from_secs(seconds));
        }
        assert_eq!(times.slowest().len(), SLOWEST);
        assert_eq!(times.slowest()[0].1, Duration::from_secs(29));
        assert_eq!(Times::default().to_string(), "");
    }
}
