//! System calls, by strace.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use anyhow::{Context as _, ensure};
use rdmacm_init::bench::Value;

use crate::run::library::{self, Library};
use crate::run::peers::Peers;
use crate::run::record;
use crate::run::selection::Selection;

const COMMAND: [&str; 5] = ["strace", "--follow-forks", "-qq", "--signal=none", "-o"];
/// Only a meter makes this call.
const MARK: &str = "getppid";
/// The vDSO answers these without a system call, where the clock allows it.
const WITHOUT_A_CALL: [&str; 3] = ["clock_gettime", "gettimeofday", "getcpu"];
/// How a workload ends: it prints what it has measured.
const RESULT: &str = "write(1, \"{";

/// Calls by name; reads that found nothing are `NAME EAGAIN`.
type Calls = BTreeMap<String, u64>;

/// Counts the calls of all workloads.
pub(crate) fn run(selection: &Selection<'_>, library: &Library, peers: &mut Peers) {
    if let Err(error) = count(selection, library, peers) {
        record::failed(library, None, &error.context("strace"));
    }
}

fn count(selection: &Selection<'_>, library: &Library, peers: &mut Peers) -> anyhow::Result<()> {
    let selected = selection.tasks(library, peers)?;
    if selected.is_empty() {
        return Ok(());
    }
    let file = tempfile::NamedTempFile::new().context("make a file")?;
    let path = file.path().to_str().context("a path in UTF-8")?;
    let command = [&COMMAND[..], &[path]].concat();
    let tasks: Vec<_> = selected.iter().map(|(_, task)| task.clone()).collect();
    let measured = library::measured(library.work(&command, &tasks), &tasks)?;
    let output = fs::read(file.path()).context("read the output of strace")?;
    let calls = calls(&String::from_utf8_lossy(&output));
    ensure!(
        calls.len() == tasks.len(),
        "strace saw {} of {} workloads",
        calls.len(),
        tasks.len()
    );
    for (((selected, _), measured), by_name) in selected.iter().zip(measured).zip(calls) {
        let value = Value::Calls {
            operations: measured.operations,
            calls: by_name.values().sum(),
            by_name,
            allocations: measured.allocations,
        };
        record::print(library, selected, value);
    }
    Ok(())
}

/// The calls in the sections of each workload.
fn calls(output: &str) -> Vec<Calls> {
    let (mut workloads, mut calls, mut measures) = (Vec::new(), Calls::new(), false);
    // A thread that was started outside of sections, by a connection's handshake, may end in one.
    let mut threads = HashSet::new();
    for line in output.lines() {
        // A thread, a call, its result.
        let (thread, call) = line.split_once(' ').unwrap_or_default();
        let call = call.trim_start();
        if call.starts_with(RESULT) {
            workloads.push(std::mem::take(&mut calls));
            continue;
        }
        threads.extend(started_thread(call).filter(|_| measures));
        let Some((name, rest)) = call.split_once('(') else {
            continue;
        };
        if name == MARK {
            measures = !measures;
            threads.insert(thread);
        } else if measures
            && threads.contains(thread)
            && !name.contains(' ')
            && !WITHOUT_A_CALL.contains(&name)
        {
            let nothing = rest.contains(" = -1 EAGAIN");
            let key = format!("{name}{}", if nothing { " EAGAIN" } else { "" });
            *calls.entry(key).or_default() += 1;
        }
    }
    workloads
}

/// The thread that the call has started.
fn started_thread(call: &str) -> Option<&str> {
    let name = call.strip_prefix("<... ").unwrap_or(call);
    let (_, result) = call.rsplit_once(" = ")?;
    (name.starts_with("clone") && !result.starts_with('-')).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_between_two_marks_are_counted() {
        let output = "\
80    clone3({flags=CLONE_VM, ...} => {parent_tid=[82]}, 88) = 82
80    openat(AT_FDCWD, \"/dev/infiniband/rdma_cm\", O_RDWR) = 3
80    getppid() = 79
80    clone3({flags=CLONE_VM, ...} <unfinished ...>
80    <... clone3 resumed> => {parent_tid=[81]}, 88) = 81
81    set_robust_list(0x7ffe, 24) = 0
80    clock_gettime(CLOCK_MONOTONIC, {tv_sec=31, tv_nsec=0}) = 0
80    write(3, \"\\25\\0\\0\\0\"..., 280) = 280
81    futex(0x7ffe, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
80    read(4, 0x7ffe, 8) = -1 EAGAIN (Resource temporarily unavailable)
81    <... futex resumed>) = 0
82    madvise(0x7ffe, 4096, MADV_DONTNEED) = 0
80    getppid() = 79
80    close(3) = 0
80    getppid() = 79
80    write(3, \"\\25\\0\\0\\0\"..., 280) = 280
80    getppid() = 79
80    write(1, \"{\\\"operations\\\":2\"..., 71) = 71
80    close(4) = 0
80    write(1, \"{\\\"operations\\\":2\"..., 71) = 71
80    exit_group(0) = ?
";
        let calls = calls(output);
        let first = [
            ("clone3", 1),
            ("futex", 1),
            ("read EAGAIN", 1),
            ("set_robust_list", 1),
            ("write", 2),
        ];
        let first = first.map(|(name, times)| (name.to_owned(), times));
        assert_eq!(calls, [first.into(), Calls::new()]);
    }
}
