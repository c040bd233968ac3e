//! Instructions in user space, by callgrind.
//!
//! One process does all workloads of a library: starting a process under callgrind takes
//! longer than its workloads.

use std::fs;

use anyhow::{Context as _, ensure};
use rdmacm_init::bench::Value;

use crate::run::functions;
use crate::run::library::{self, Library};
use crate::run::peers::Peers;
use crate::run::record;
use crate::run::selection::Selection;

const COMMAND: [&str; 8] = [
    "env",
    // `allocations::UNCOUNTED`
    "RDMACM_UNCOUNTED=1",
    "valgrind",
    "--tool=callgrind",
    "-q",
    "--collect-atstart=no",
    "--toggle-collect=*measured_section*",
    // Writes a file with the number of the call.
    "--dump-before=*workload_end*",
];

/// Counts the instructions of all workloads.
pub(crate) fn run(selection: &Selection<'_>, library: &Library, peers: &mut Peers) {
    if let Err(error) = count(selection, library, peers) {
        record::failed(library, None, &error.context("callgrind"));
    }
}

fn count(selection: &Selection<'_>, library: &Library, peers: &mut Peers) -> anyhow::Result<()> {
    let selected = selection.tasks(library, peers)?;
    if selected.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir().context("make a folder")?;
    let file = folder.path().join("counts");
    let out = format!("--callgrind-out-file={}", file.display());
    let command = [&COMMAND[..], &[&out]].concat();
    let tasks: Vec<_> = selected.iter().map(|(_, task)| task.clone()).collect();
    let measured = library::measured(library.work(&command, &tasks), &tasks)?;
    for (index, ((selected, _), measured)) in selected.iter().zip(measured).enumerate() {
        let path = file.with_extension((index + 1).to_string());
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let value = Value::Instructions {
            operations: measured.operations,
            instructions: sum(&text)?,
        };
        record::print(library, selected, value);
        if library.is_own() {
            let value = Value::Functions {
                operations: measured.operations,
                functions: functions::of(&text),
            };
            record::print(library, selected, value);
        }
    }
    Ok(())
}

/// The sum of a file of callgrind.
pub(crate) fn sum(text: &str) -> anyhow::Result<u64> {
    let value = |name| text.lines().find_map(|line| line.strip_prefix(name));
    ensure!(
        value("events: ") == Some("Ir"),
        "callgrind counted other events"
    );
    let sum = value("summary: ").context("callgrind wrote no summary")?;
    sum.trim().parse().context("callgrind's summary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_file_is_its_sum() {
        let text = "# callgrind format\nversion: 1\npart: 1\n\npositions: line\nevents: Ir\n\
                    summary: 8420\n\nfn=(2) frame\n16 45\n";
        assert_eq!(sum(text).unwrap(), 8420);
        assert!(sum(&text.replace("Ir", "Ir Dr")).is_err());
        assert!(sum("events: Ir\n").is_err());
    }
}
