//! The guest suite: the same test program on each kernel.

use std::io::Write as _;
use std::path::PathBuf;

use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::host_packages::{self, Need};
use crate::kernel::Choice;
use crate::test::c_programs;
use crate::test::harness::{Harness, NonZeroExit};
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

/// The test target's name.
pub(crate) const TARGET: &str = "guest";

/// Builds the suite and the programs that it runs, and returns the suite's path.
pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    if host_packages::is_debian() {
        host_packages::install(&Need::GUEST_SUITE)?;
    }
    let suite = workspace.build_test(TARGET)?;
    c_programs::build(workspace)?;
    Ok(suite)
}

/// Runs the suite on one kernel with these expected skips. `argv` is its path and its
/// arguments.
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
    let mut stderr = Vec::new();
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            harness.read(bytes);
            Ok(())
        },
        stderr: &mut |bytes| Ok(stderr.write_all(bytes)?),
    };
    let ending = guest::run(guest, machine, argv, None, &mut sinks);
    let end = ending.and_then(|ending| match ending {
        Ending::Exit(0) => Ok(()),
        Ending::Exit(code) => Err(NonZeroExit(format!("exit code {code}")).into()),
        Ending::Signal(number) => anyhow::bail!("signal {number} killed the suite"),
    });
    let failed = harness.close(end);
    if failed {
        println!("{}", String::from_utf8_lossy(&stderr).trim_end());
    }
}
