//! All checks and tests, and their results.

mod c_programs;
mod guest_failures;
mod guests;
mod harness;
mod host;
mod lines;
mod skips;
mod suite;
mod times;
mod totals;
mod wire;
mod without_c;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

pub(crate) use self::c_programs::CLibrary;
use self::guests::Guests;
pub(crate) use self::lines::Outcome;
use self::skips::Skips;
pub(crate) use self::suite::{TARGET as SUITE, build as build_suite};
pub(crate) use self::totals::Totals;
use self::wire::Selection;
use crate::abi;
use crate::coverage;
use crate::guest::{Guest, Machine};
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
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
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

/// Runs only what takes long: stress tests and random operations with many seeds, many
/// cycles of connecting and disconnecting, many messages of byte streams, the long tests of
/// two guests on a wire, and fuzzing of ibacm's client; on both kernels or on one
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SoakArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The number of seeds for the stress tests on each device; random operations run with
    /// four times as many
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    seeds: u32,
    /// The number of connections that exchange messages and disconnect, on each device
    #[arg(long, value_name = "NUMBER", default_value_t = 2000)]
    cycles: u32,
    /// The number of messages that each side of a byte stream sends while it receives as many
    #[arg(long, value_name = "NUMBER", default_value_t = 5_000_000)]
    messages: u32,
    /// The number of clients that connect to a listener beside silent ones, on each device
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    clients: u32,
    /// How long to fuzz ibacm's client on the host, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    fuzz: u32,
}

/// The time for one seed on both devices of a slow machine.
const SEED_TIMEOUT: Duration = Duration::from_secs(240);

/// Runs the long tests.
pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let suite = suite::build(&workspace)?.to_string_lossy().into_owned();
    let machine = Machine {
        timeout: SEED_TIMEOUT * (args.seeds + 1),
        ..Machine::default()
    };
    let mut totals = Totals::default();
    let mut guests = Vec::new();
    for choice in args.kernel.choices() {
        let guest = Guest::prepare(&workspace, args.kernel.prepare(&choice)?)?;
        let skips = Skips::for_kernel(&workspace, &choice)?;
        // A seed of random operations takes a fraction of the time of a stress test.
        let rounds = [
            ("stress", "RDMACM_SEEDS", args.seeds),
            ("data::random", "RDMACM_SEEDS", args.seeds * 4),
            ("messages::leaks", "RDMACM_CYCLES", args.cycles),
            ("two_directions", "RDMACM_MESSAGES", args.messages),
            (
                "silent_clients_delay_nobody",
                "RDMACM_CLIENTS",
                args.clients,
            ),
            // The shortest queues of librdmacm, which take the most time.
            ("sequence_numbers_begin_again", "RDMACM_REQUESTS", 16),
            // All messages, by rstream itself.
            ("streams::measured", "RDMACM_PART", 1),
        ];
        for (tests, variable, number) in rounds {
            let setting = format!("{variable}={number}");
            let command = ["env", &setting, &suite, tests].map(str::to_owned);
            totals.phase(&format!("{choice}/{tests}"), |totals| {
                let skips = skips.clone().matching(tests);
                suite::run(&guest, &choice, &command, &machine, skips, totals);
            });
        }
        guests.push(guest);
    }
    totals.phase("wire", |totals| {
        wire::run(&workspace, &guests, Selection::LONG, totals);
    });
    totals.phase("fuzz", |totals| host::fuzz(&workspace, args.fuzz, totals));
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
