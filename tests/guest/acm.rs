//! The C library as the judge of what is made of ibacm's answers.
//!
//! A script is a question and what ibacm does about it. Each runs in a process
//! with a `/run` of its own, in which one daemon, which plays the script, is
//! asked by librdmacm (`tests/c/acm.c`) and by this library. What they ask is
//! the same, byte for byte, and so is the list they make of the answer, but that
//! this library puts what the kernel reaches first and knows the kernel's source
//! where librdmacm knows none. Where librdmacm fails, its list for an answer that
//! it gets on with is the measure.

use libtest_mimic::{Completion, Failed, Trial};
use rdmacm_tests::Site;

use crate::child;
use crate::command::built;

mod judge;
mod list;
mod question;
mod scripts;

const C_PROGRAM: &str = "rdmacm-c-acm";
const WITHOUT_C: &str = "tests/c/acm.c was not built: it takes gcc and librdmacm's headers";
const SCRIPT: &str = "RDMACM_TEST_SCRIPT";

/// What a test runs in a process of its own.
pub(crate) const TASKS: &[(&str, fn())] = &[("acm", play)];

/// A test for each script on this device.
pub(crate) fn trials(kernel: &str, site: Site) -> Vec<Trial> {
    let there = built(C_PROGRAM).exists();
    let scripts = scripts::all(&site).into_iter();
    let trial = |script: scripts::Script| {
        let name = format!("{kernel}/{}/acm::{}", site.driver(), script.name);
        if there {
            Trial::test(name, move || run(script.name, &site))
        } else {
            Trial::ignorable_test(name, || Ok(Completion::ignored_with(WITHOUT_C)))
        }
    };
    scripts.map(trial).collect()
}

fn run(script: &str, site: &Site) -> Result<(), Failed> {
    let _turn = crate::Turn::take(false);
    let output = child::task_at("acm", site).env(SCRIPT, script).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// In a child: the script it was told.
fn play() {
    let asked = std::env::var(SCRIPT).unwrap();
    let site = child::site();
    let mut scripts = scripts::all(&site).into_iter();
    let script = scripts.find(|script| script.name == asked).unwrap();
    child::hide("/run");
    judge::judge(&script, &site);
}
