//! Every check and every test, and what they come to.

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

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use self::guests::Guests;
use self::lines::Outcome;
use self::skips::Skips;
pub(crate) use self::suite::TARGET as SUITE;
use self::totals::Totals;
use self::wire::Selection;
use crate::abi;
use crate::coverage;
use crate::guest::{Guest, Machine};
use crate::host_packages::{self, Need};
use crate::kernel::{Choice, Kernel, Role};
use crate::workspace::Workspace;

/// Checks format, lints, documentation, dependencies and the kernel's ABI, runs
/// unit and doc tests, and the guest suite on both kernels
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Leaves the guests out
    #[arg(long)]
    quick: bool,
    /// Only the guest suite of this kernel: `stock`, `new` or the path of a
    /// bzImage
    #[arg(long, value_name = "KERNEL", conflicts_with = "quick")]
    kernel: Option<Choice>,
    /// The modules (`/lib/modules/RELEASE`) of a kernel image of your own
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// Seconds each guest may live
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    timeout: u32,
}

/// Plays the tests of two guests on a wire, and nothing else
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WireArgs {
    /// Only on this kernel: `stock`, `new` or the path of a bzImage
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<Choice>,
    /// The modules (`/lib/modules/RELEASE`) of a kernel image of your own
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// Only those that last seconds, as `cargo xtask test` plays them
    #[arg(long)]
    short: bool,
    /// Only tests whose names have this in them
    #[arg(value_name = "FILTER", default_value = "")]
    filter: String,
}

/// Does what the arguments say.
pub(crate) fn run_on_a_wire(args: &WireArgs) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    workspace.build_programs()?;
    let guests = choices(args.kernel.as_ref())
        .iter()
        .map(|choice| {
            let kernel = Kernel::choose(choice, args.modules.as_deref())?;
            Guest::prepare(&workspace, kernel)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut totals = Totals::default();
    let selection = Selection {
        short: true,
        long: !args.short,
        name: &args.filter,
    };
    wire::run(&workspace, &guests, selection, &mut totals);
    Ok(conclude(&totals))
}

/// Plays what takes long and nothing else: storms of connections and random operations,
/// seed after seed, connections that come and go, and two guests on a wire of which one
/// waits in vain
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SoakArgs {
    /// Only on this kernel: `stock`, `new` or the path of a bzImage
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<Choice>,
    /// The modules (`/lib/modules/RELEASE`) of a kernel image of your own
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// How many seeds of storms on each device; of random operations four times as
    /// many
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    seeds: u32,
    /// How many connections that carry something come and go on each device
    #[arg(long, value_name = "NUMBER", default_value_t = 2000)]
    cycles: u32,
    /// How long ibacm's client is lied to, on the host
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    fuzz: u32,
}

/// What a seed may take on a slow machine, on both devices.
const SEED: Duration = Duration::from_secs(240);

/// Does what the arguments say.
pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let suite = suite::build(&workspace)?.to_string_lossy().into_owned();
    let machine = Machine {
        timeout: SEED * (args.seeds + 1),
        ..Machine::default()
    };
    let mut totals = Totals::default();
    let mut guests = Vec::new();
    for choice in choices(args.kernel.as_ref()) {
        let kernel = Kernel::choose(&choice, args.modules.as_deref())?;
        let guest = Guest::prepare(&workspace, kernel)?;
        // A seed of random operations takes a fraction of a storm's time.
        let rounds = [
            ("stress", "RDMACM_SEEDS", args.seeds),
            ("data::random", "RDMACM_SEEDS", args.seeds * 4),
            ("messages::leaks", "RDMACM_CYCLES", args.cycles),
        ];
        for (tests, variable, number) in rounds {
            let setting = format!("{variable}={number}");
            let command = ["env", &setting, &suite, tests].map(str::to_owned);
            totals.phase(&format!("{choice}/{tests}"), |totals| {
                suite::run(&guest, &choice, &command, &machine, Skips::NONE, totals);
            });
        }
        guests.push(guest);
    }
    totals.phase("wire", |totals| {
        wire::run(&workspace, &guests, Selection::LONG, totals);
    });
    totals.phase("fuzz", |totals| host::fuzz(&workspace, args.fuzz, totals));
    Ok(conclude(&totals))
}

/// Does what the arguments say.
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
    Ok(conclude(&totals))
}

/// What the guests run is built first: the host's tests are made of the same crates.
/// The small guests, which mostly wait, play while the host checks; those of the suite
/// have the machine to themselves.
fn run_all(args: &Args, workspace: &Workspace, totals: &mut Totals) {
    let guests = totals.phase("guest/build", |totals| {
        Guests::prepare(workspace, &choices(args.kernel.as_ref()), args, totals)
    });
    thread::scope(|scope| {
        let small = scope.spawn(|| {
            let mut totals = Totals::default();
            guests.run_small(workspace, &mut totals);
            totals
        });
        check_host(args, workspace, totals);
        match small.join() {
            Ok(small) => totals.absorb(small),
            Err(_) => totals.fail("guest/small", "its thread panicked"),
        }
    });
    guests.run_suite(args, totals);
}

/// Everything that needs no guest.
fn check_host(args: &Args, workspace: &Workspace, totals: &mut Totals) {
    totals.phase("host", |totals| host::run(workspace, totals));
    totals.phase("coverage", |totals| {
        totals.measure("coverage/page", || coverage::check(workspace));
    });
    totals.phase("without-c", |totals| without_c::run(workspace, totals));
    totals.phase("abi-check", |totals| compare_abi(args, totals));
}

/// Where the time went, all failures once more, and the sum.
fn conclude(totals: &Totals) -> ExitCode {
    println!("\n{}", totals.times());
    totals.print_failures();
    println!("{totals}");
    // A filter that fits no test shows nothing.
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
    let everything = !args.quick && args.kernel.is_none();
    let kernel = match Kernel::kept(Role::New) {
        Ok(None) if everything => Kernel::prepare(Role::New, false).map(Some),
        kept => kept,
    };
    match kernel {
        Ok(Some(kernel)) => {
            totals.measure(name, || abi::of(&kernel).and_then(abi::compare));
        }
        Ok(None) => {
            let reason = "the new kernel is not here: `cargo xtask kernel` makes it".to_owned();
            totals.add(name, &Outcome::Skipped(Some(reason)));
        }
        Err(error) => totals.step(name, Err(error)),
    }
}

/// The kernel that is asked for, or both.
fn choices(asked: Option<&Choice>) -> Vec<Choice> {
    match asked {
        Some(choice) => vec![choice.clone()],
        None => Role::ALL.map(Choice::Role).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        let mut totals = Totals::default();
        assert_eq!(conclude(&totals), ExitCode::FAILURE);
        totals.add("a", &Outcome::Skipped(None));
        assert_eq!(conclude(&totals), ExitCode::FAILURE);
        totals.add("b", &Outcome::Passed);
        assert_eq!(conclude(&totals), ExitCode::SUCCESS);
        totals.add("c", &Outcome::Failed);
        assert_eq!(conclude(&totals), ExitCode::FAILURE);
    }
}
