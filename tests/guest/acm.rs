//! librdmacm as the reference for the use of ibacm's answers.
//!
//! A script is a question and ibacm's answer to it. Each script runs on a thread with a
//! `/run` of its own. There, librdmacm (`tests/c/acm.c`) and this library connect to
//! the same simulated ibacm. Both must send the same request, byte for byte, and make
//! the same list of the answer, except that this library lists addresses that the
//! kernel reaches first and knows the kernel's source address where librdmacm knows
//! none. If librdmacm fails on an answer, the expected list is librdmacm's list for
//! another answer, which the script gives.

use std::fs;
use std::path::Path;
use std::thread;

use rdmacm_addrinfo::{Acm, AddrInfoResolver, Hints};
use rdmacm_tests::{AcmDaemon, PATIENCE, Site};

use crate::child;
use crate::command::built;
use crate::schedule::Planned;
use rdmacm_tests_macros::case;

mod comparison;
mod list;
pub(crate) mod messages;
mod question;
mod scripts;

use scripts::Script;

const C_PROGRAM: &str = "rdmacm-c-acm";
const WITHOUT_C: &str = "tests/c/acm.c was not built: it takes gcc and librdmacm's headers";

/// Returns a test for each script on this device.
pub(crate) fn trials(kernel: &str, site: Site) -> Vec<Planned> {
    let there = built(C_PROGRAM).exists();
    let scripts = scripts::all(&site).into_iter();
    let trial = |script: Script| {
        let name = format!("{kernel}/{}/acm::{}", site.driver(), script.name);
        if there {
            Planned::new(name, script.when, move || {
                with_own_run(|| comparison::judge(&script, &site));
                Ok(())
            })
        } else {
            Planned::skipped(name, WITHOUT_C)
        }
    };
    scripts.map(trial).collect()
}

/// Runs a test on a thread with an empty `/run` that only the thread and its children
/// see.
fn with_own_run(test: impl FnOnce() + Send) {
    let body = || {
        child::hide("/run");
        test();
    };
    let done = thread::scope(|scope| scope.spawn(body).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Returns how many entries are found, and how many of them have paths.
fn found(resolver: &AddrInfoResolver, site: &Site) -> (usize, usize) {
    let hints = Hints::rc().deadline(PATIENCE);
    let node = site.v4.to_string();
    let list = resolver.resolve(node.as_str(), "7471", &hints).unwrap();
    let with_paths = list.iter().filter(|info| !info.paths.is_empty());
    (list.len(), with_paths.count())
}

#[case]
fn the_run_directory_is_configurable(site: &Site) {
    let site = *site;
    with_own_run(move || {
        let rundir = Path::new("/run/elsewhere");
        fs::create_dir(rundir).unwrap();
        let daemon = AcmDaemon::unix(rundir, move |_| messages::known(&site));
        let acm = Acm::with_rundir(rundir).timeout(PATIENCE);
        let resolvers = [acm.clone(), acm].map(|acm| AddrInfoResolver::new().acm(acm));
        for resolver in &resolvers {
            assert_eq!(found(resolver, &site), (2, 2));
        }
        // Two lookups of one context share its connection.
        assert_eq!(daemon.requests(2).len(), 2);
        assert_eq!(daemon.connections(), 1);
    });
}

#[case]
fn ibacm_can_be_turned_off(site: &Site) {
    let site = *site;
    with_own_run(move || {
        let daemon = AcmDaemon::unix(Path::new("/run"), move |_| messages::known(&site));
        assert_eq!(found(&AddrInfoResolver::new().acm(None), &site), (1, 0));
        assert_eq!(daemon.connections(), 0);
    });
}
