//! librdmacm as the reference for connection management.
//!
//! A scenario is a script of commands for two actors. Each actor is a process:
//! one is librdmacm (`tests/c/actor`), the other is this library's core, command
//! by command. Every scenario runs with each of them on each side, and what they
//! answer is the same, line by line, whoever says it. The newest librdmacm plays as the
//! system's does.

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

use actor::{Company, Kind};
use names::Names;
use scenario::Scenario;
use transcript::Transcript;

/// The actor that is librdmacm.
const C_ACTOR: &str = "rdmacm-c-actor";
const WITHOUT_C: &str = "tests/c/actor was not built: it takes gcc and librdmacm's headers";

/// Who plays `a` and who plays `b`; the first says what is right.
const CASTS: &[[Kind; 2]] = &[
    [Kind::C, Kind::C],
    [Kind::Ours, Kind::Ours],
    [Kind::C, Kind::Ours],
    [Kind::Ours, Kind::C],
];

/// What is new with another release of librdmacm: how it gets on with itself and with
/// this library.
const CASTS_OF_ANOTHER: &[[Kind; 2]] = &[
    [Kind::C, Kind::C],
    [Kind::C, Kind::Ours],
    [Kind::Ours, Kind::C],
];

fn casts(rdma_core: RdmaCore) -> &'static [[Kind; 2]] {
    match rdma_core {
        RdmaCore::System => CASTS,
        RdmaCore::Newest => CASTS_OF_ANOTHER,
    }
}

/// A test for each scenario on this device.
pub(crate) fn trials(kernel: &str, site: Site, rdma_core: RdmaCore) -> Vec<Planned> {
    let there = rdma_core.program(C_ACTOR).exists();
    let company = Arc::new(Company::new(rdma_core));
    let scenarios = script::scenarios(site.soft).into_iter();
    let place = rdma_core.place(site.driver());
    let trial = |scenario: Scenario| {
        let name = format!("{kernel}/{place}/scenarios::{}", scenario.name);
        if there {
            let company = Arc::clone(&company);
            let when = scenario.when;
            let run = move || judge(&scenario, &site, &company);
            Planned::new(name, when, run)
        } else {
            Planned::skipped(name, WITHOUT_C)
        }
    };
    scenarios.map(trial).collect()
}

/// Plays a scenario with every cast and compares.
fn judge(scenario: &Scenario, site: &Site, company: &Company) -> Result<(), Failed> {
    let mut verdict: Option<Transcript> = None;
    for cast in casts(company.rdma_core) {
        let played = play(scenario, site, company, *cast)?;
        match &verdict {
            None => {
                if let Some(directory) = std::env::var_os("RDMACM_TRANSCRIPTS") {
                    let place = company.rdma_core.place(site.device).replace('/', "-");
                    let file = format!("{place}-{}.txt", scenario.name);
                    std::fs::write(Path::new(&directory).join(file), played.to_string())?;
                }
                played.check_facts(scenario)?;
                verdict = Some(played);
            }
            Some(right) => right.compare(&played, scenario)?,
        }
    }
    Ok(())
}

fn play(
    scenario: &Scenario,
    site: &Site,
    company: &Company,
    cast: [Kind; 2],
) -> Result<Transcript, Failed> {
    let mut names = Names::new(site);
    let mut actors = cast.map(|kind| company.hire(kind));
    let mut played = Transcript::of(cast);
    for step in &scenario.steps {
        let command = names.fill_in(&step.command);
        for side in step.who.sides() {
            actors[*side].tell(&command);
        }
        for side in step.who.sides() {
            let answer = actors[*side].answer();
            let answer = answer.map_err(|trouble| played.broken_off(step, &trouble))?;
            let lines = answer.iter().map(|line| names.name(line)).collect();
            played.push(*side, step, lines);
        }
    }
    for actor in actors {
        company.take_back(actor);
    }
    Ok(played)
}
