//! The guests of a whole run: small ones, and those that run the suite.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::bench;
use crate::guest::{Guest, Machine};
use crate::kernel::{Choice, KernelArgs, Role};
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::test::wire::Selection;
use crate::test::{Args, guest_failures, suite, wire, without_c};
use crate::workspace::Workspace;

/// What is ready to run. What could not be prepared has been reported as a failure.
pub(crate) struct Guests {
    kernels: Vec<TestedKernel>,
    suite: Option<PathBuf>,
    /// The command, built as a static program.
    command: Option<PathBuf>,
}

/// A kernel that the suite runs on.
struct TestedKernel {
    choice: Choice,
    guest: Guest,
    /// The skips that are expected on it.
    skips: Skips,
}

impl TestedKernel {
    fn prepare(workspace: &Workspace, choice: &Choice, args: &KernelArgs) -> anyhow::Result<Self> {
        Ok(Self {
            choice: choice.clone(),
            guest: Guest::prepare(workspace, args.prepare(choice)?)?,
            skips: Skips::for_kernel(workspace, choice)?,
        })
    }
}

impl Guests {
    /// Builds what the guests run, and the kernels that are not in the cache.
    pub(crate) fn prepare(workspace: &Workspace, args: &KernelArgs, totals: &mut Totals) -> Self {
        let suite = ok_or_fail(totals, "guest/build", suite::build(workspace));
        let command = ok_or_fail(
            totals,
            "without-c/static",
            without_c::build_static(workspace),
        );
        let mut kernels = Vec::new();
        for choice in args.choices() {
            let tested = TestedKernel::prepare(workspace, &choice, args);
            kernels.extend(ok_or_fail(totals, &format!("guest/{choice}"), tested));
        }
        Self {
            kernels,
            suite,
            command,
        }
    }

    /// Runs the pairs of guests on a wire, and beside them the single guests of each kernel, one
    /// after the other, and the guest that counts what the workloads of `tests/bench` need.
    pub(crate) fn run_small(&self, workspace: &Workspace, totals: &mut Totals) {
        thread::scope(|scope| {
            let each = self.kernels.iter().map(|tested| {
                scope.spawn(|| {
                    let mut totals = Totals::default();
                    self.run_single_guests(tested, &mut totals);
                    totals
                })
            });
            let each: Vec<_> = each.collect();
            let newest = |tested: &&TestedKernel| tested.guest.kernel.name == Role::New.as_str();
            let counts = self.kernels.iter().find(newest).map(|tested| {
                scope.spawn(|| {
                    let mut totals = Totals::default();
                    totals.phase("bench", |totals| {
                        bench::check(workspace, &tested.guest, totals);
                    });
                    totals
                })
            });
            let guests = self.kernels.iter().map(|tested| tested.guest.clone());
            let guests: Vec<_> = guests.collect();
            totals.phase("wire", |totals| {
                wire::run(workspace, &guests, Selection::SHORT, totals);
            });
            for thread in each.into_iter().chain(counts) {
                match thread.join() {
                    Ok(results) => totals.merge(results),
                    Err(_) => totals.fail("guest/small", "its thread panicked"),
                }
            }
        });
    }

    fn run_single_guests(&self, tested: &TestedKernel, totals: &mut Totals) {
        let TestedKernel { choice, guest, .. } = tested;
        let step = format!("guest/{choice}");
        if let Some(suite) = &self.suite {
            totals.phase(&format!("{step}/guest-failures"), |totals| {
                guest_failures::run(guest, suite, &step, totals);
            });
        }
        if let Some(command) = &self.command {
            totals.phase(&format!("{step}/static"), |totals| {
                without_c::run_static(guest, command, &step, totals);
            });
        }
    }

    /// Runs the suite on one kernel after the other.
    pub(crate) fn run_suite(&self, args: &Args, totals: &mut Totals) {
        let Some(suite) = &self.suite else { return };
        let command = [suite.to_string_lossy().into_owned()];
        let machine = Machine {
            timeout: Duration::from_secs(args.timeout.into()),
            ..Machine::default()
        };
        for tested in &self.kernels {
            let TestedKernel { choice, guest, .. } = tested;
            let skips = tested.skips.clone();
            totals.phase(&format!("guest/{choice}"), |totals| {
                suite::run(guest, choice, &command, &machine, skips, totals);
            });
        }
    }
}

/// Returns the value; reports an error as the failure of the test `name`.
fn ok_or_fail<T>(totals: &mut Totals, name: &str, result: anyhow::Result<T>) -> Option<T> {
    result
        .map_err(|error| totals.fail(name, &format!("{error:#}")))
        .ok()
}
