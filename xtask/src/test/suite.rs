//! The guest suite: the same test program on each kernel.

use std::io::Write as _;
use std::path::PathBuf;

use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::host_packages::{self, Need};
use crate::kernel::Choice;
use crate::test::c_programs;
use crate::test::harness::{Harness, NotZero};
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

/// Its test target.
pub(crate) const TARGET: &str = "guest";

/// Builds what the suite runs; its own path.
pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    if host_packages::is_debian() {
        host_packages::install(&Need::GUEST_SUITE)?;
    }
    let suite = workspace.build_test(TARGET)?;
    c_programs::build(workspace)?;
    Ok(suite)
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
