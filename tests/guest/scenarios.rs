//! librdmacm as the reference for connection management.
//!
//! A scenario is a script of commands for two actors. Each actor is a process that uses
//! either librdmacm (`tests/c/actor`) or this library's core, one call for each command.
//! Every scenario runs with each of them on each side, and their answers must be the same,
//! line by line. The newest librdmacm runs the same scenarios as the system's.

use std::sync::Arc;

use libtest_mimic::Failed;
use rdmacm_core::AddressAbi;
use rdmacm_tests::Site;
use rdmacm_tests::scenarios::{self, Library, Scenario, Transcript};

use crate::rdma_core::RdmaCore;
use crate::schedule::{Planned, When};

pub(crate) mod process;

use process::ProcessPool;

/// The C actor.
const C_ACTOR: &str = "rdmacm-c-actor";
const NOT_RECORDED: &str = "the recording is out of date: run `cargo xtask record`";
const WITHOUT_C: &str = "tests/c/actor was not built: it takes gcc and librdmacm's headers";

/// The libraries of `a` and `b`. The answers of the first pair are the expected ones.
const PAIRS: &[[Library; 2]] = &[
    [Library::C, Library::C],
    [Library::Ours, Library::Ours],
    [Library::C, Library::Ours],
    [Library::Ours, Library::C],
];

/// The pairs with another release of librdmacm in one or both roles.
const PAIRS_OF_ANOTHER: &[[Library; 2]] = &[
    [Library::C, Library::C],
    [Library::C, Library::Ours],
    [Library::Ours, Library::C],
];

fn pairs(rdma_core: RdmaCore) -> &'static [[Library; 2]] {
    match rdma_core {
        RdmaCore::System => PAIRS,
        RdmaCore::Newest => PAIRS_OF_ANOTHER,
    }
}

/// The kernel of the recorded transcripts.
const RECORDED_KERNEL: &str = "new";

/// Returns a test for each scenario on this device.
pub(crate) fn trials(kernel: &str, site: Site, rdma_core: RdmaCore) -> Vec<Planned> {
    let is_built = rdma_core.program(C_ACTOR).exists();
    let is_recorded = kernel == RECORDED_KERNEL && matches!(rdma_core, RdmaCore::System);
    let mut recorded = scenarios::recorded(site.soft);
    let actors = Arc::new(ProcessPool::new(rdma_core));
    let prefix = rdma_core.place(site.driver());
    let trial = |scenario: Scenario| {
        let name = format!("{kernel}/{prefix}/scenarios::{}", scenario.name);
        if !is_built {
            return Planned::skipped(name, WITHOUT_C);
        }
        let actors = Arc::clone(&actors);
        let recorded = recorded.remove(scenario.name.as_str());
        let when = if scenario.is_waiting {
            When::Waiting
        } else {
            When::Shared
        };
        Planned::new(name, when, move || {
            let c = run_all(&scenario, &site, &actors)?;
            if is_recorded {
                check_recorded(recorded.as_ref(), &c, &scenario)?;
            }
            Ok(())
        })
    };
    let scenarios = scenarios::scenarios(site.soft).into_iter();
    scenarios.map(trial).collect()
}

/// Runs a scenario with every pair of libraries, and compares the answers. Returns those
/// of librdmacm alone.
fn run_all(scenario: &Scenario, site: &Site, pool: &ProcessPool) -> Result<Transcript, Failed> {
    let mut pairs = pairs(pool.rdma_core).iter();
    let expected = run(scenario, site, pool, *pairs.next().unwrap())?;
    expected.check_facts(scenario)?;
    for pair in pairs {
        expected.compare(&run(scenario, site, pool, *pair)?, scenario)?;
    }
    Ok(expected)
}

fn run(
    scenario: &Scenario,
    site: &Site,
    pool: &ProcessPool,
    libraries: [Library; 2],
) -> Result<Transcript, String> {
    let mut actors = libraries.map(|library| pool.take(library));
    let transcript = scenarios::run(scenario, site, libraries, &mut actors)?;
    for actor in actors {
        pool.put_back(actor);
    }
    Ok(transcript)
}

/// Checks that the simulator's tests expect what librdmacm answers.
fn check_recorded(
    recorded: Option<&Transcript>,
    c: &Transcript,
    scenario: &Scenario,
) -> Result<(), Failed> {
    let recorded = recorded.ok_or(NOT_RECORDED)?;
    let compared = recorded.compare(c, scenario);
    compared.map_err(|error| format!("{NOT_RECORDED}\n{error}").into())
}

/// Prints the transcripts of librdmacm, for the recording of this device.
pub(crate) fn print_recording(driver: &str) {
    let pool = ProcessPool::new(RdmaCore::System);
    let mut sites = [Site::rxe, Site::siw]
        .map(|site| site(AddressAbi::AnyFamily))
        .into_iter();
    let site = sites.find(|site| site.driver() == driver).unwrap();
    for scenario in scenarios::scenarios(site.soft) {
        let transcript = run(&scenario, &site, &pool, [Library::C, Library::C]).unwrap();
        transcript.check_facts(&scenario).unwrap();
        print!("{}", scenarios::record(&scenario.name, &transcript));
    }
}
