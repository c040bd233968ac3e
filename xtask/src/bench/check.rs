//! Tests that no count has risen.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::bench::counts::{Count, Counts};
use crate::bench::driver::{COUNTS, Driver, Machine};
use crate::guest::Guest;
use crate::process;
use crate::test::{Outcome, Totals};
use crate::workspace::Workspace;

const FILE: &str = "tests/bench/counts.txt";
/// By how many percent instructions may rise: the allocator depends on what ran before.
const TOLERANCE: u64 = 3;
const UPDATE: &str = "after a change, run `cargo xtask bench --update`";
/// How often workloads are measured whose counts have risen.
const ATTEMPTS: u32 = 3;

/// Writes the file with the counts of this checkout, and returns its path.
pub(crate) fn update(workspace: &Workspace, guest: Guest) -> anyhow::Result<PathBuf> {
    let driver = Driver::build_own(workspace)?;
    let (machine, toolchain) = (Machine::Guest(guest), toolchain(workspace)?);
    let mut counts = measure(&toolchain, &driver, &machine, &[])?;
    // What a wait costs may differ: the lower one is what is needed.
    counts.take_lower(&measure(&toolchain, &driver, &machine, &[])?);
    let path = workspace.root.join(FILE);
    fs::write(&path, counts.to_string()).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// Compares the counts of all workloads with the file: a test of the calls and allocations of
/// each, and one of the instructions of those whose instructions are counted.
pub(crate) fn run(workspace: &Workspace, guest: &Guest, totals: &mut Totals) {
    let name = format!("{}/bench", guest.kernel.name);
    match compare(workspace, guest) {
        Ok(results) => {
            for (workload, test, outcome) in results {
                let (device, workload) = workload.split_once('/').unwrap_or(("", &workload));
                let name = format!("{}/{device}/bench/{workload}: {test}", guest.kernel.name);
                match outcome {
                    Ok(outcome) => totals.add(&name, &outcome),
                    Err(reason) => totals.fail(&name, &reason),
                }
            }
        }
        Err(error) => totals.fail(&name, &format!("{error:#}")),
    }
}

/// A workload, what is tested of it, and the result.
type Compared = (String, &'static str, Result<Outcome, String>);

fn compare(workspace: &Workspace, guest: &Guest) -> anyhow::Result<Vec<Compared>> {
    let committed = fs::read_to_string(workspace.root.join(FILE)).context(FILE)?;
    let committed = Counts::parse(&committed).context(FILE)?;
    let driver = Driver::build_own(workspace)?;
    let machine = Machine::Guest(guest.clone());
    let toolchain = toolchain(workspace)?;
    let measured = lowest(&committed, |workloads| {
        measure(&toolchain, &driver, &machine, workloads)
    })?;
    Ok(results(&committed, &measured))
}

/// Measures all workloads, and again those whose counts have risen: counts vary. That never makes a
/// measurement fail, so one that fails is a failure.
fn lowest(
    committed: &Counts,
    mut measure: impl FnMut(&[String]) -> anyhow::Result<Counts>,
) -> anyhow::Result<Counts> {
    let mut lowest = measure(&[])?;
    for _ in 1..ATTEMPTS {
        let risen = risen(committed, &lowest);
        if risen.is_empty() {
            break;
        }
        lowest.take_lower(&measure(&risen)?);
    }
    Ok(lowest)
}

fn measure(
    toolchain: &str,
    driver: &Driver,
    machine: &Machine,
    workloads: &[String],
) -> anyhow::Result<Counts> {
    let arguments = [&[COUNTS.to_owned()], workloads].concat();
    let records = driver.run(machine, &arguments, &mut |_| {})?;
    Counts::new(toolchain.to_owned(), &records)
}

/// What the number of instructions depends on apart from the source.
fn toolchain(workspace: &Workspace) -> anyhow::Result<String> {
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // The checkout may choose a toolchain.
    compiler.current_dir(&workspace.root).arg("--version");
    let compiler = process::output(&mut compiler)?;
    let c_library = process::output(Command::new("ldd").arg("--version"))?;
    let c_library = c_library.lines().next().unwrap_or_default();
    let c_library = c_library.split_whitespace().last().unwrap_or_default();
    Ok(format!("{}, glibc {c_library}", compiler.trim()))
}

/// The workloads with a count that has risen.
fn risen(committed: &Counts, measured: &Counts) -> Vec<String> {
    let results = results(committed, measured).into_iter();
    let failed =
        results.filter(|(name, _, result)| result.is_err() && measured.rows.contains_key(name));
    let mut names: Vec<_> = failed.map(|(name, ..)| name).collect();
    names.dedup();
    names
}

/// The tests of each workload that is in the file or was measured.
fn results(committed: &Counts, measured: &Counts) -> Vec<Compared> {
    let same_toolchain = committed.toolchain == measured.toolchain;
    let unmeasured = committed
        .rows
        .keys()
        .filter(|name| !measured.rows.contains_key(*name));
    let mut results = Vec::new();
    for name in measured.rows.keys().chain(unmeasured) {
        let (before, now) = (committed.rows.get(name), measured.rows.get(name));
        let (Some(before), Some(now)) = (before, now) else {
            let missing = if now.is_none() {
                "it was not measured"
            } else {
                "it has no line"
            };
            let reason = format!("{missing}; {UPDATE}");
            results.push((name.clone(), "counts", Err(reason)));
            continue;
        };
        results.push((name.clone(), "calls and allocations", exact(before, now)));
        if before.instructions.is_some() || now.instructions.is_some() {
            let in_both = before.instructions.is_some() && now.instructions.is_some();
            let result = if same_toolchain || !in_both {
                instructions(before, now)
            } else {
                let (was, is) = (&committed.toolchain, &measured.toolchain);
                Ok(Outcome::Skipped(Some(format!(
                    "counted with {was}, this is {is}"
                ))))
            };
            results.push((name.clone(), "instructions", result));
        }
    }
    results
}

fn exact(before: &Count, now: &Count) -> Result<Outcome, String> {
    let mut problems = Vec::new();
    if before.operations != now.operations {
        problems.push(format!(
            "operations: {} instead of {}",
            now.operations, before.operations
        ));
    }
    let allocations = [before, now].map(|count| Some(count.allocations));
    for (what, [before, now]) in [
        ("system calls", [before.calls, now.calls]),
        ("allocations", allocations),
    ] {
        problems.extend(problem(what, 0, before, now));
    }
    pass_unless(&problems)
}

fn instructions(before: &Count, now: &Count) -> Result<Outcome, String> {
    let (before, now) = (before.instructions, now.instructions);
    pass_unless(problem("instructions", TOLERANCE, before, now).as_slice())
}

/// What is wrong with a count: it is only in the file, it was only measured, or it has risen by
/// more than `tolerance` percent.
fn problem(what: &str, tolerance: u64, before: Option<u64>, now: Option<u64>) -> Option<String> {
    match (before, now) {
        (Some(_), None) => Some(format!("{what}: not measured; {UPDATE}")),
        (None, Some(_)) => Some(format!("{what}: not in the file; {UPDATE}")),
        (Some(before), Some(now)) if now * 100 > before * (100 + tolerance) => {
            Some(format!("{what}: {now} instead of {before}"))
        }
        _ => None,
    }
}

fn pass_unless(problems: &[String]) -> Result<Outcome, String> {
    if problems.is_empty() {
        return Ok(Outcome::Passed);
    }
    Err(problems.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(toolchain: &str, instructions: u64, calls: u64, allocations: u64) -> Counts {
        let count = Count {
            operations: 64,
            instructions: Some(instructions),
            calls: Some(calls),
            allocations,
        };
        Counts {
            toolchain: toolchain.to_owned(),
            rows: [("rxe/id".to_owned(), count)].into(),
        }
    }

    /// `+` for each test that passes, `-` for one that fails, `s` for a skip.
    fn compared(committed: &Counts, measured: &Counts) -> String {
        let results = results(committed, measured).into_iter();
        let letters = results.map(|(.., result)| match result {
            Ok(Outcome::Passed) => '+',
            Ok(_) => 's',
            Err(_) => '-',
        });
        letters.collect()
    }

    #[test]
    fn counts_that_rise_fail() {
        let committed = counts("a", 10_000, 10, 5);
        for (instructions, calls, allocations, expected) in [
            (10_000, 10, 5, "++"),
            (10_300, 10, 5, "++"),
            (10_301, 10, 5, "+-"),
            (10_000, 11, 5, "-+"),
            (10_000, 10, 6, "-+"),
            (2_000, 1, 0, "++"),
        ] {
            let measured = counts("a", instructions, calls, allocations);
            assert_eq!(compared(&committed, &measured), expected);
            assert_eq!(
                risen(&committed, &measured).is_empty(),
                !expected.contains('-')
            );
        }
    }

    #[test]
    fn what_has_risen_is_measured_again_but_not_what_has_failed() {
        let committed = counts("a", 10_000, 10, 5);
        let measured = |outcomes: &[Option<u64>]| {
            let mut left = outcomes.iter();
            let lowest = lowest(&committed, |_| {
                let calls = left.next().copied().flatten().context("it failed");
                calls.map(|calls| counts("a", 10_000, calls, 5))
            });
            let letters = lowest.ok().map(|lowest| compared(&committed, &lowest));
            (letters, left.len())
        };
        let found = |letters: &str| Some(letters.to_owned());
        assert_eq!(measured(&[Some(10), None]), (found("++"), 1));
        assert_eq!(measured(&[Some(11), Some(10), None]), (found("++"), 1));
        assert_eq!(
            measured(&[Some(11), Some(11), Some(11), Some(10)]),
            (found("-+"), 1)
        );
        assert_eq!(measured(&[None, Some(10)]), (None, 1));
        assert_eq!(measured(&[Some(11), None, Some(10)]), (None, 1));
    }

    #[test]
    fn another_compiler_skips_instructions_only() {
        let committed = counts("a", 10_000, 10, 5);
        assert_eq!(compared(&committed, &counts("b", 99_000, 10, 5)), "+s");
        assert_eq!(compared(&committed, &counts("b", 99_000, 11, 5)), "-s");
    }

    #[test]
    fn a_count_that_is_only_in_the_file_or_only_measured_fails() {
        let with = counts("a", 10_000, 10, 5);
        let change = |toolchain, without: fn(&mut Count)| {
            let mut counts = counts(toolchain, 10_000, 10, 5);
            without(counts.rows.get_mut("rxe/id").unwrap());
            counts
        };
        for toolchain in ["a", "b"] {
            let without = change(toolchain, |count| count.instructions = None);
            assert_eq!(compared(&with, &without), "+-");
            assert_eq!(compared(&without, &with), "+-");
            assert_eq!(compared(&without, &without), "+");
        }
        let without = change("a", |count| count.calls = None);
        assert_eq!(compared(&with, &without), "-+");
        assert_eq!(compared(&without, &with), "-+");
        assert_eq!(compared(&without, &without), "++");
        let reason = results(&with, &without).remove(0).2.unwrap_err();
        assert!(reason.contains("cargo xtask bench --update"), "{reason}");
    }

    #[test]
    fn workloads_without_a_line_or_a_measurement_fail() {
        let committed = counts("a", 10_000, 10, 5);
        let nothing = Counts {
            toolchain: "a".to_owned(),
            ..Counts::default()
        };
        assert_eq!(compared(&committed, &nothing), "-");
        assert_eq!(compared(&nothing, &committed), "-");
        let mut other = committed.clone();
        other.rows.get_mut("rxe/id").unwrap().operations = 32;
        assert_eq!(compared(&committed, &other), "-+");
    }
}
