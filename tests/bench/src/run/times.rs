//! Times: every workload in a process of its own, the libraries in turn.

use rdmacm_init::bench::Value;

use crate::run::cold_start;
use crate::run::library::{self, Library};
use crate::run::peers::Peers;
use crate::run::record;
use crate::run::selection::{Selected, Selection};

/// Times each workload `rounds` times.
pub(crate) fn run(
    selection: &Selection<'_>,
    libraries: &[Library],
    rounds: u32,
    peers: &mut Peers,
) {
    for selected in selection.iter() {
        for round in 0..rounds.min(selected.measure.rounds) {
            // Nobody is always the first one, or always after the same one.
            let order: Box<dyn Iterator<Item = &Library>> = match round % 2 {
                0 => Box::new(libraries.iter()),
                _ => Box::new(libraries.iter().rev()),
            };
            for library in order {
                if let Err(error) = time(selected, library, round, peers) {
                    record::failed(library, Some(selected), &error);
                }
            }
        }
    }
}

fn time(
    selected: &Selected<'_>,
    library: &Library,
    round: u32,
    peers: &mut Peers,
) -> anyhow::Result<()> {
    if selected.measure.process {
        return cold_start::time(selected, library, round);
    }
    let Some(task) = selected.task(library, peers)? else {
        return Ok(());
    };
    let tasks = [task];
    let command = library.work(&[], &tasks);
    for measured in library::measured(command, &tasks)? {
        record::print(library, selected, Value::Time { round, measured });
    }
    Ok(())
}
