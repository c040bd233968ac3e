//! All checks and tests, and their results.

mod c_programs;
mod guest_failures;
mod guests;
mod harness;
mod host;
mod lines;
mod skips;
mod soak;
mod suite;
mod times;
mod totals;
mod wire;
mod without_c;

use std::process::ExitCode;
use std::thread;

pub(crate) use self::c_programs::CLibrary;
use self::guests::Guests;
pub(crate) use self::lines::Outcome;
pub(crate) use self::soak::{SoakArgs, run as run_soak};
pub(crate) use self::suite::{TARGET as SUITE, build as build_suite};
pub(crate) use self::totals::Totals;
use self::wire::Selection;
use crate::abi;
use crate::coverage;
use crate::guest::Guest;
use crate::host_packages::{self, Need};
use crate::kernel::{Kernel, KernelArgs, Role};
use crate::workspace::Workspace;

/// Checks format, lints, documentation, dependencies and the kernel's ABI, runs
/// unit and doc tests, and the guest suite on both kernels or on one
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Leaves the guests out
    #[arg(long, conflicts_with = "kernel")]
    quick: bool,
    #[command(flatten)]
    kernel: KernelArgs,
    /// The timeout of each guest, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 7200)]
    timeout: u32,
}

/// Runs only the tests of two guests on a wire, on both kernels or on one
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WireArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// Only tests that take seconds, as `cargo xtask test` does
    #[arg(long)]
    short: bool,
    /// Only tests whose names contain this text
    #[arg(value_name = "FILTER", default_value = "")]
    filter: String,
}

/// Runs the tests of two guests.
pub(crate) fn run_wire(args: &WireArgs) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    workspace.build_programs()?;
    let choices = args.kernel.choices();
    let guests = choices
        .iter()
        .map(|choice| Guest::prepare(&workspace, args.kernel.prepare(choice)?))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut totals = Totals::default();
    let selection = Selection {
        short: true,
        long: !args.short,
        name: &args.filter,
    };
    wire::run(&workspace, &guests, selection, &mut totals);
    Ok(print_summary(&totals))
}

/// Runs checks and tests as the arguments say.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    if host_packages::is_debian() && !args.quick {
        host_packages::install(&Need::all())?;
    }
    let mut totals = Totals::default();
    if args.quick {
        check_host(args, &workspace, &mut totals);
        let reason = "`--quick` leaves the guests out".to_owned();
        totals.add("guest", &Outcome::Skipped(Some(reason)));
    } else {
        run_all(args, &workspace, &mut totals);
    }
    Ok(print_summary(&totals))
}

/// Builds what the guests run first, because the tests on the host use the same crates. The
/// small guests mostly wait, so they run beside the checks on the host. The suite runs alone.
fn run_all(args: &Args, workspace: &Workspace, totals: &mut Totals) {
    let guests = totals.phase("guest/build", |totals| {
        Guests::prepare(workspace, &args.kernel, totals)
    });
    thread::scope(|scope| {
        let small = scope.spawn(|| {
            let mut totals = Totals::default();
            guests.run_small(workspace, &mut totals);
            totals
        });
        check_host(args, workspace, totals);
        match small.join() {
            Ok(small) => totals.merge(small),
            Err(_) => totals.fail("guest/small", "its thread panicked"),
        }
    });
    guests.run_suite(args, totals);
}

/// Runs everything that needs no guest.
fn check_host(args: &Args, workspace: &Workspace, totals: &mut Totals) {
    totals.phase("host", |totals| host::run(workspace, totals));
    totals.phase("coverage", |totals| {
        totals.measure("coverage/page", || coverage::check(workspace));
    });
    totals.phase("without-c", |totals| without_c::run(workspace, totals));
    totals.phase("abi-check", |totals| compare_abi(args, totals));
}

/// Prints times, failures and totals.
fn print_summary(totals: &Totals) -> ExitCode {
    println!("\n{}", totals.times());
    totals.print_failures();
    println!("{totals}");
    // A filter that matches no test is an error.
    if totals.failed() == 0 && totals.passed() > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn compare_abi(args: &Args, totals: &mut Totals) {
    totals.measure("abi-check/installed", || {
        abi::installed().and_then(abi::compare)
    });
    let name = "abi-check/new";
    let everything = !args.quick && !args.kernel.is_chosen();
    let kernel = match Kernel::from_cache(Role::New) {
        Ok(None) if everything => Kernel::prepare(Role::New, false).map(Some),
        cached => cached,
    };
    match kernel {
        Ok(Some(kernel)) => {
            totals.measure(name, || abi::of_kernel(&kernel).and_then(abi::compare));
        }
        Ok(None) => {
            let reason = "the new kernel is not built: run `cargo xtask kernel`".to_owned();
            totals.add(name, &Outcome::Skipped(Some(reason)));
        }
        Err(error) => totals.step(name, Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        let mut totals = Totals::default();
        assert_eq!(print_summary(&totals), ExitCode::FAILURE);
        totals.add("a", &Outcome::Skipped(None));
        assert_eq!(print_summary(&totals), ExitCode::FAILURE);
        totals.add("b", &Outcome::Passed);
        assert_eq!(print_summary(&totals), ExitCode::SUCCESS);
        totals.add("c", &Outcome::Failed);
        assert_eq!(print_summary(&totals), ExitCode::FAILURE);
    }
}
