//! The counts that must not rise: `tests/bench/counts.txt`.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, ensure};
use rdmacm_init::bench::{Record, StableCounts, Value};

use crate::bench::results::OWN;

/// What the first line says.
const TOOLCHAIN: &str = "toolchain: ";
const HEADING: &str = "\
# What each workload of tests/bench needs on the new kernel, all its operations together.
# `cargo xtask bench --update` writes this file; `cargo xtask test` fails if instructions
# rise by more than 3 %, or system calls or allocations at all.
";

/// The counts of a workload. Those that depend on how long a peer takes are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) operations: u64,
    pub(crate) instructions: Option<u64>,
    pub(crate) calls: Option<u64>,
    pub(crate) allocations: u64,
}

impl Count {
    /// The lower of each of two counts.
    fn min(self, other: Self) -> Self {
        let min = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            operations: self.operations.min(other.operations),
            instructions: min(self.instructions, other.instructions),
            calls: min(self.calls, other.calls),
            allocations: self.allocations.min(other.allocations),
        }
    }
}

/// Counts by `DEVICE/WORKLOAD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The compiler and the C library that the instructions depend on.
    pub(crate) toolchain: String,
    pub(crate) rows: BTreeMap<String, Count>,
}

impl Counts {
    /// The counts of this library in the results, or the errors.
    pub(crate) fn new(toolchain: String, records: &[Record]) -> anyhow::Result<Self> {
        let mut rows: BTreeMap<String, Count> = BTreeMap::new();
        for record in records.iter().filter(|record| record.library == OWN) {
            if let Value::Failed { error } = &record.value {
                anyhow::bail!("{error}");
            }
            let subject = record
                .subject
                .as_ref()
                .context("a result without a workload")?;
            let exact = subject.counts == StableCounts::Exact;
            let repeats_calls = exact || subject.counts == StableCounts::Calls;
            let row = rows.entry(subject.name()).or_default();
            match &record.value {
                Value::Instructions { instructions, .. } if exact => {
                    row.instructions = Some(*instructions);
                }
                Value::Calls {
                    operations,
                    by_name,
                    allocations,
                    ..
                } => {
                    row.operations = *operations;
                    row.calls = repeats_calls.then(|| without_waits(by_name));
                    row.allocations = *allocations;
                }
                _ => {}
            }
        }
        Ok(Self { toolchain, rows })
    }

    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut counts = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(toolchain) = line.strip_prefix(TOOLCHAIN) {
                toolchain.clone_into(&mut counts.toolchain);
            } else if !line.trim().is_empty() && !line.starts_with("workload") {
                let (name, count) = parse_row(line).with_context(|| format!("line: {line}"))?;
                let before = counts.rows.insert(name, count);
                ensure!(before.is_none(), "a workload twice: {line}");
            }
        }
        ensure!(!counts.toolchain.is_empty(), "no toolchain");
        Ok(counts)
    }

    /// Takes the lower one of each count of another run.
    pub(crate) fn take_lower(&mut self, other: &Self) {
        for (name, count) in &other.rows {
            if let Some(row) = self.rows.get_mut(name) {
                *row = row.min(*count);
            }
        }
    }
}

/// The number of calls that do not only wait: how often something waits depends on the
/// machine.
fn without_waits(by_name: &BTreeMap<String, u64>) -> u64 {
    let waits = |name: &str| {
        name.ends_with(" EAGAIN") || ["poll", "epoll_wait", "futex", "eventfd2"].contains(&name)
    };
    let times = |wanted: &str| by_name.get(wanted).copied().unwrap_or(0);
    let calls: u64 = by_name
        .iter()
        .filter(|(name, _)| !waits(name))
        .map(|(_, times)| times)
        .sum();
    // A channel's first wait creates an event descriptor, remembers for which process, and closes
    // it with the channel.
    let opened = times("eventfd2");
    calls - opened.min(times("close")) - opened.min(times("getpid"))
}

fn parse_row(line: &str) -> anyhow::Result<(String, Count)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [name, operations, instructions, calls, allocations] = words[..] else {
        anyhow::bail!("not a name and four counts");
    };
    let optional = |word: &str| match word {
        "-" => Ok(None),
        word => word.parse().map(Some),
    };
    let count = Count {
        operations: operations.parse()?,
        instructions: optional(instructions)?,
        calls: optional(calls)?,
        allocations: allocations.parse()?,
    };
    Ok((name.to_owned(), count))
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { toolchain, rows } = self;
        writeln!(formatter, "{HEADING}{TOOLCHAIN}{toolchain}\n")?;
        let mut row = |cells: [&str; 5]| {
            let [name, operations, instructions, calls, allocations] = cells;
            writeln!(
                formatter,
                "{name:<24} {operations:>10} {instructions:>12} {calls:>8} {allocations:>11}"
            )
        };
        row([
            "workload",
            "operations",
            "instructions",
            "calls",
            "allocations",
        ])?;
        let optional = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        for (name, count) in rows {
            row([
                name,
                &count.operations.to_string(),
                &optional(count.instructions),
                &optional(count.calls),
                &count.allocations.to_string(),
            ])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const TEXT: &str = "\
# A comment
toolchain: rustc 1.95.0, glibc 2.36

workload operations instructions calls allocations
rxe/id           64       468288   576          64
rxe/round-trip   64            -     -           0
";

    #[test]
    fn a_file_is_parsed_as_it_is_written() {
        let counts = Counts::parse(TEXT).unwrap();
        assert_eq!(counts.rows["rxe/id"].instructions, Some(468_288));
        assert_eq!(counts.rows["rxe/round-trip"].calls, None);
        assert_eq!(Counts::parse(&counts.to_string()).unwrap(), counts);
        assert!(Counts::parse(&TEXT.replace("576", "many")).is_err());
        assert!(Counts::parse(&TEXT.replace("rxe/round-trip", "rxe/id")).is_err());
        assert!(Counts::parse("").is_err());
    }

    #[test]
    fn waits_do_not_count() {
        let calls = |calls: &[(&str, u64)]| {
            let calls = calls.iter().map(|&(name, times)| (name.to_owned(), times));
            without_waits(&calls.collect())
        };
        assert_eq!(calls(&[("write", 5), ("close", 2)]), 7);
        let waited = [("write", 5), ("write EAGAIN", 1), ("poll", 1)];
        let opened = [("eventfd2", 1), ("getpid", 1), ("close", 3)];
        assert_eq!(calls(&[&waited[..], &opened].concat()), 7);
        // The channel is closed outside.
        assert_eq!(calls(&[("write", 5), ("eventfd2", 1), ("poll", 1)]), 5);
    }

    #[test]
    fn the_lower_of_two_counts_is_taken() {
        let mut counts = Counts::parse(TEXT).unwrap();
        let other = TEXT.replace("468288", "468200").replace("576", "577");
        counts.take_lower(&Counts::parse(&other).unwrap());
        let row = counts.rows["rxe/id"];
        assert_eq!((row.instructions, row.calls), (Some(468_200), Some(576)));
        assert_eq!(counts.rows["rxe/round-trip"].instructions, None);
    }
}
