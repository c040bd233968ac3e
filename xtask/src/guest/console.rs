//! What the kernel says on its console, and what of it ends a run.

use std::collections::VecDeque;
use std::fmt;

/// How much of the console a failure shows.
const TAIL: usize = 50;

/// Signs that the kernel is no longer to be trusted, in the kernel's words.
/// The first that fits names the trouble.
const SIGNS: [(&str, &str); 10] = [
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

/// The last lines, and the first trouble among all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    lines: VecDeque<String>,
    trouble: Option<&'static str>,
}

impl Console {
    /// Takes one line; true when it is the first that means trouble.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if self.lines.len() == TAIL {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
        let first = self.trouble.is_none();
        if first {
            self.trouble = trouble(line);
        }
        first && self.trouble.is_some()
    }

    /// What went wrong in the kernel, if anything did.
    pub(crate) const fn trouble(&self) -> Option<&'static str> {
        self.trouble
    }
}

impl fmt::Display for Console {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return formatter.write_str("The kernel's console stayed empty.");
        }
        formatter.write_str("The end of the kernel's console:")?;
        self.lines
            .iter()
            .try_for_each(|line| write!(formatter, "\n  {line}"))
    }
}

fn trouble(line: &str) -> Option<&'static str> {
    let (begin, end) = HUNG;
    if line
        .split_once(begin)
        .is_some_and(|(_, rest)| rest.contains(end))
    {
        return Some("hung task");
    }
    SIGNS
        .iter()
        .find(|(sign, _)| line.contains(sign))
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_has_its_name() {
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
            assert_eq!(trouble(line), Some(name), "{line}");
        }
    }

    #[test]
    fn ordinary_lines_are_no_trouble() {
        for line in [
            "[    0.5] rdma_rxe: loaded",
            "[    0.5] INFO: task scheduling as usual",
            "[    0.5] debug: off",
            "",
        ] {
            assert_eq!(trouble(line), None, "{line}");
        }
    }

    #[test]
    fn the_first_trouble_counts_and_the_tail_is_kept() {
        let mut console = Console::default();
        assert!(console.take("Oops: 0002"));
        assert!(!console.take("Kernel panic - not syncing: Fatal exception"));
        assert_eq!(console.trouble(), Some("kernel oops"));
        for number in 0..TAIL {
            console.take(&format!("line {number}"));
        }
        let text = console.to_string();
        assert!(text.contains("line 0") && !text.contains("panic"), "{text}");
    }
}
