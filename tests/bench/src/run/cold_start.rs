//! A whole process, from its start to its first answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use rdmacm_init::bench::Value;

use crate::run::callgrind;
use crate::run::library::Library;
use crate::run::process;
use crate::run::record;
use crate::run::selection::Selected;

/// Times a process of the library, if there is one for this measure.
pub(crate) fn time(selected: &Selected<'_>, library: &Library, round: u32) -> anyhow::Result<()> {
    let Some(command) = command(selected, library, &[]) else {
        return Ok(());
    };
    let took = process::run(command, |_| ())?;
    let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    record::print(library, selected, Value::ProcessTime { round, nanoseconds });
    Ok(())
}

/// Counts the instructions of a process of the library.
pub(crate) fn count(selected: &Selected<'_>, library: &Library) {
    if let Err(error) = count_instructions(selected, library) {
        record::failed(library, Some(selected), &error.context("callgrind"));
    }
}

fn count_instructions(selected: &Selected<'_>, library: &Library) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("make a folder")?;
    let file = folder.path().join("counts");
    let out = format!("--callgrind-out-file={}", file.display());
    let under = ["valgrind", "--tool=callgrind", "-q", &out];
    let Some(command) = command(selected, library, &under) else {
        return Ok(());
    };
    process::run(command, |_| ())?;
    let value = Value::Instructions {
        operations: 1,
        instructions: callgrind::sum(&fs::read_to_string(file).context("read the counts")?)?,
    };
    record::print(library, selected, value);
    Ok(())
}

fn command(selected: &Selected<'_>, library: &Library, under: &[&str]) -> Option<Command> {
    let address = selected.device.address.to_string();
    let argv = library.process(selected.measure, &address)?;
    let mut words = under
        .iter()
        .map(Path::new)
        .chain(argv.iter().map(AsRef::as_ref));
    let mut command = Command::new(words.next()?);
    command.args(words);
    Some(command)
}
