//! The guest suite: the same test program on each kernel.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use rdmacm_init::Ending;
use serde::Deserialize;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::host_packages::{self, Need};
use crate::kernel::Choice;
use crate::process;
use crate::test::c_programs;
use crate::test::harness::{Harness, NotZero};
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

/// The package of the guest suite.
pub(crate) const PACKAGE: &str = "rdmacm-tests";
/// Its test target.
pub(crate) const TARGET: &str = "guest";

/// Builds what the suite runs; its own path.
pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    if host_packages::is_debian() {
        host_packages::install(&Need::GUEST_SUITE)?;
    }
    workspace.build_programs()?;
    c_programs::build(workspace)?;
    let mut suite = workspace.cargo();
    suite.args([
        "test",
        "--quiet",
        "--package",
        PACKAGE,
        "--test",
        TARGET,
        "--no-run",
    ]);
    suite.arg("--message-format=json-render-diagnostics");
    suite.stderr(std::process::Stdio::inherit());
    find_executable(&process::output(&mut suite)?).context("cargo built no guest suite")
}

/// One of cargo's messages; most have no executable.
#[derive(Debug, Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

fn find_executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| {
            message.target.as_ref().is_some_and(|target| {
                target.name == TARGET && target.kind.iter().any(|kind| kind == "test")
            })
        })
        .find_map(|message| message.executable)
}

/// Runs it on one kernel, where these tests skip themselves: `argv` is its path and what
/// it is told.
pub(crate) fn run(
    guest: &Guest,
    choice: &Choice,
    argv: &[String],
    machine: &Machine,
    skips: Skips,
    totals: &mut Totals,
) {
    let step = format!("guest/{choice}");
    eprintln!(
        "guest suite on {}, by {} ...",
        guest.kernel, guest.accelerator
    );
    let mut harness = Harness::new(totals, &step, "").expect(skips);
    let mut complaints = Vec::new();
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            harness.take(bytes);
            Ok(())
        },
        stderr: &mut |bytes| Ok(complaints.write_all(bytes)?),
    };
    let ending = guest::run(guest, machine, argv, None, &mut sinks);
    let end = ending.and_then(|ending| match ending {
        Ending::Exit(0) => Ok(()),
        Ending::Exit(code) => Err(NotZero(format!("exit code {code}")).into()),
        Ending::Signal(number) => anyhow::bail!("signal {number} killed the suite"),
    });
    let failed = harness.close(end);
    if failed {
        println!("{}", String::from_utf8_lossy(&complaints).trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"x","kind":["lib"]},"executable":null}
{"reason":"compiler-artifact","target":{"name":"guest","kind":["test"]},"executable":"/t/guest-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(find_executable(messages), Some(PathBuf::from("/t/guest-1")));
        assert_eq!(find_executable(""), None);
    }
}
