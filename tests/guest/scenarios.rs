//! librdmacm as the reference for connection management.
//!
//! A scenario is a script of commands for two actors. Each actor is a process that uses
//! either librdmacm (`tests/c/actor`) or this library's core, one call for each command.
//! Every scenario runs with each of them on each side, and their answers must be the same,
//! line by line. The newest librdmacm runs the same scenarios as the system's.

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Failed;
use rdmacm_tests::Site;

use crate::rdma_core::RdmaCore;
use crate::schedule::Planned;

mod actor;
mod difference;
mod names;
pub(crate) mod ours;
mod scenario;
mod script;
mod transcript;

use actor::{ActorPool, Kind};
use names::Names;
use scenario::Scenario;
use transcript::Transcript;

/// The actor that is librdmacm.
const C_ACTOR: &str = "rdmacm-c-actor";
const WITHOUT_C: &str = "tests/c/actor was not built: it takes gcc and librdmacm's headers";

/// The libraries of `a` and `b`. The answers of the first pair are the expected ones.
const PAIRS: &[[Kind; 2]] = &[
    [Kind::C, Kind::C],
    [Kind::Ours, Kind::Ours],
    [Kind::C, Kind::Ours],
    [Kind::Ours, Kind::C],
];

/// The same with another release of librdmacm: only pairs in which it takes part.
const PAIRS_OF_ANOTHER: &[[Kind; 2]] = &[
    [Kind::C, Kind::C],
    [Kind::C, Kind::Ours],
    [Kind::Ours, Kind::C],
];

fn pairs(rdma_core: RdmaCore) -> &'static [[Kind; 2]] {
    match rdma_core {
        RdmaCore::System => PAIRS,
        RdmaCore::Newest => PAIRS_OF_ANOTHER,
    }
}

/// A test for each scenario on this device.
pub(crate) fn trials(kernel: &str, site: Site, rdma_core: RdmaCore) -> Vec<Planned> {
    let is_built = rdma_core.program(C_ACTOR).exists();
    let actors = Arc::new(ActorPool::new(rdma_core));
    let scenarios = script::scenarios(site.soft).into_iter();
    let prefix = rdma_core.place(site.driver());
    let trial = |scenario: Scenario| {
        let name = format!("{kernel}/{prefix}/scenarios::{}", scenario.name);
        if is_built {
            let actors = Arc::clone(&actors);
            let when = scenario.when;
            let run = move || run_all(&scenario, &site, &actors);
            Planned::new(name, when, run)
        } else {
            Planned::skipped(name, WITHOUT_C)
        }
    };
    scenarios.map(trial).collect()
}

/// Runs a scenario with every pair of libraries, and compares the answers.
fn run_all(scenario: &Scenario, site: &Site, actors: &ActorPool) -> Result<(), Failed> {
    let mut expected: Option<Transcript> = None;
    for pair in pairs(actors.rdma_core) {
        let transcript = run(scenario, site, actors, *pair)?;
        match &expected {
            None => {
                if let Some(directory) = std::env::var_os("RDMACM_TRANSCRIPTS") {
                    let prefix = actors.rdma_core.place(site.device).replace('/', "-");
                    let file = format!("{prefix}-{}.txt", scenario.name);
                    std::fs::write(Path::new(&directory).join(file), transcript.to_string())?;
                }
                transcript.check_facts(scenario)?;
                expected = Some(transcript);
            }
            Some(expected) => expected.compare(&transcript, scenario)?,
        }
    }
    Ok(())
}

fn run(
    scenario: &Scenario,
    site: &Site,
    pool: &ActorPool,
    pair: [Kind; 2],
) -> Result<Transcript, Failed> {
    let mut names = Names::new(site);
    let mut actors = pair.map(|kind| pool.take(kind));
    let mut transcript = Transcript::new(pair);
    for step in &scenario.steps {
        let command = names.fill_in(&step.command);
        for side in step.process.sides() {
            actors[*side].send(&command);
        }
        for side in step.process.sides() {
            let answer = actors[*side].answer();
            let answer = answer.map_err(|reason| transcript.interrupted(step, &reason))?;
            let lines = answer.iter().map(|line| names.name(line)).collect();
            transcript.push(*side, step, lines);
        }
    }
    for actor in actors {
        pool.put_back(actor);
    }
    Ok(transcript)
}
