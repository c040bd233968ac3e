//! The guests of a whole run: small ones, and those of the suite.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::guest::{Guest, Machine};
use crate::kernel::{Choice, Kernel};
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::test::wire::Selection;
use crate::test::{Args, guest_failures, suite, wire, without_c};
use crate::workspace::Workspace;

/// What is ready to run; what is not is a failure already.
pub(crate) struct Guests {
    kernels: Vec<Tested>,
    suite: Option<PathBuf>,
    /// The command as a static program.
    command: Option<PathBuf>,
}

/// A kernel that the suite runs on.
struct Tested {
    choice: Choice,
    guest: Guest,
    /// The tests that skip themselves there.
    skips: Skips,
}

impl Tested {
    fn prepare(workspace: &Workspace, choice: &Choice, args: &Args) -> anyhow::Result<Self> {
        let kernel = Kernel::choose(choice, args.modules.as_deref())?;
        Ok(Self {
            choice: choice.clone(),
            guest: Guest::prepare(workspace, kernel)?,
            skips: Skips::of(workspace, choice)?,
        })
    }
}

impl Guests {
    /// Builds what they run, and makes the kernels that are not there yet.
    pub(crate) fn prepare(
        workspace: &Workspace,
        choices: &[Choice],
        args: &Args,
        totals: &mut Totals,
    ) -> Self {
        let suite = keep(totals, "guest/build", suite::build(workspace));
        let command = keep(
            totals,
            "without-c/static",
            without_c::build_static(workspace),
        );
        let mut kernels = Vec::new();
        for choice in choices {
            let tested = Tested::prepare(workspace, choice, args);
            kernels.extend(keep(totals, &format!("guest/{choice}"), tested));
        }
        Self {
            kernels,
            suite,
            command,
        }
    }

    /// Runs the wire's, and beside them those of each kernel one after the other.
    pub(crate) fn run_small(&self, workspace: &Workspace, totals: &mut Totals) {
        thread::scope(|scope| {
            let each = self.kernels.iter().map(|tested| {
                scope.spawn(|| {
                    let mut totals = Totals::default();
                    self.run_singles(tested, &mut totals);
                    totals
                })
            });
            let each: Vec<_> = each.collect();
            let guests = self.kernels.iter().map(|tested| tested.guest.clone());
            let guests: Vec<_> = guests.collect();
            totals.phase("wire", |totals| {
                wire::run(workspace, &guests, Selection::SHORT, totals);
            });
            for singles in each {
                match singles.join() {
                    Ok(singles) => totals.absorb(singles),
                    Err(_) => totals.fail("guest/small", "its thread panicked"),
                }
            }
        });
    }

    fn run_singles(&self, tested: &Tested, totals: &mut Totals) {
        let Tested { choice, guest, .. } = tested;
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

    /// Runs the suite, a kernel after the other.
    pub(crate) fn run_suite(&self, args: &Args, totals: &mut Totals) {
        let Some(suite) = &self.suite else { return };
        let command = [suite.to_string_lossy().into_owned()];
        let machine = Machine {
            timeout: Duration::from_secs(args.timeout.into()),
            ..Machine::default()
        };
        for tested in &self.kernels {
            let Tested { choice, guest, .. } = tested;
            let skips = tested.skips.clone();
            totals.phase(&format!("guest/{choice}"), |totals| {
                suite::run(guest, choice, &command, &machine, skips, totals);
            });
        }
    }
}

/// What went well; anything else is a failure of this name.
fn keep<T>(totals: &mut Totals, name: &str, result: anyhow::Result<T>) -> Option<T> {
    result
        .map_err(|error| totals.fail(name, &format!("{error:#}")))
        .ok()
}
