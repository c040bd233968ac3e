//! The guest kernel's console, and messages on it that end a run.

use std::collections::VecDeque;
use std::fmt;

/// The number of lines that a failure shows.
const TAIL: usize = 50;

/// Messages that mean that the kernel failed, each with the failure's name. The first match
/// counts.
const PATTERNS: [(&str, &str); 10] = [
    ("Kernel panic - not syncing", "kernel panic"),
    ("soft lockup - CPU", "soft lockup"),
    ("hard LOCKUP on cpu", "hard lockup"),
    ("detected stalls on", "RCU stall"),
    ("self-detected stall on", "RCU stall"),
    ("BUG: ", "kernel bug"),
    ("kernel BUG at", "kernel bug"),
    ("Oops: ", "kernel oops"),
    // A program's trap says `general protection fault ip:`.
    ("general protection fault, ", "kernel oops"),
    ("general protection fault: ", "kernel oops"),
];
const HUNG: (&str, &str) = ("INFO: task ", "blocked for more than");

/// The last lines of the console, and the first failure on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    lines: VecDeque<String>,
    failure: Option<&'static str>,
}

impl Console {
    /// Adds a line. Returns whether it is the first that reports a failure.
    pub(crate) fn add_line(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if self.lines.len() == TAIL {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
        let first = self.failure.is_none();
        if first {
            self.failure = failure_in(line);
        }
        first && self.failure.is_some()
    }

    /// The kernel's first failure, if there is one.
    pub(crate) const fn failure(&self) -> Option<&'static str> {
        self.failure
    }
}

impl fmt::Display for Console {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return formatter.write_str("The kernel's console is empty.");
        }
        formatter.write_str("The end of the kernel's console:")?;
        self.lines
            .iter()
            .try_for_each(|line| write!(formatter, "\n  {line}"))
    }
}

fn failure_in(line: &str) -> Option<&'static str> {
    let (begin, end) = HUNG;
    if line
        .split_once(begin)
        .is_some_and(|(_, rest)| rest.contains(end))
    {
        return Some("hung task");
    }
    PATTERNS
        .iter()
        .find(|(pattern, _)| line.contains(pattern))
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_recognized() {
        for (line, name) in [
            (
                "[    2.1] Kernel panic - not syncing: Attempted to kill init!",
                "kernel panic",
            ),
            (
                "[   60.0] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]",
                "soft lockup",
            ),
            (
                "[  242.6] INFO: task kworker:7 blocked for more than 120 seconds.",
                "hung task",
            ),
            (
                "[    9.9] BUG: kernel NULL pointer dereference, address: 08",
                "kernel bug",
            ),
            ("[    9.9] Oops: 0002 [#1] PREEMPT SMP NOPTI", "kernel oops"),
            (
                "[   21.0] rcu: INFO: rcu_sched self-detected stall on CPU",
                "RCU stall",
            ),
            ("[    3.0] kernel BUG at mm/slub.c:400!", "kernel bug"),
        ] {
            assert_eq!(failure_in(line), Some(name), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_failures() {
        for line in [
            "[    0.5] rdma_rxe: loaded",
            "[    0.5] INFO: task scheduling as usual",
            "[    0.5] debug: off",
            "",
        ] {
            assert_eq!(failure_in(line), None, "{line}");
        }
    }

    #[test]
    fn the_first_failure_counts_and_the_last_lines_are_stored() {
        let mut console = Console::default();
        assert!(console.add_line("Oops: 0002"));
        assert!(!console.add_line("Kernel panic - not syncing: Fatal exception"));
        assert_eq!(console.failure(), Some("kernel oops"));
        for number in 0..TAIL {
            console.add_line(&format!("line {number}"));
        }
        let text = console.to_string();
        assert!(text.contains("line 0") && !text.contains("panic"), "{text}");
    }
}
