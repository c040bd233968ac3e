//! Two guests on one wire: connections with a peer that rejects, is frozen, dies or is
//! restarted.

mod dead;
mod frozen;
mod group;
mod guest_client;
mod healthy;
mod pair;
mod restarted;
mod soft_device;
mod status;
mod test_context;

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::guest::Guest;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

use self::group::{GuestAction, TestGroup};
use self::soft_device::SoftDevice;
use self::test_context::TestContext;

/// The groups, in the order in which they run on a pair of guests.
const GROUPS: [TestGroup; 4] = [
    TestGroup {
        actions: &[],
        cases: healthy::CASES,
    },
    TestGroup {
        actions: &[GuestAction::Freeze, GuestAction::Resume],
        cases: frozen::CASES,
    },
    TestGroup {
        actions: &[
            GuestAction::Kill,
            GuestAction::Restart,
            GuestAction::AttachNetwork,
        ],
        cases: restarted::CASES,
    },
    TestGroup {
        actions: &[GuestAction::None, GuestAction::Kill, GuestAction::None],
        cases: dead::CASES,
    },
];
/// How many groups run on the first pair, where there are two pairs of guests.
const ON_FIRST_PAIR: usize = 2;

/// Which tests to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    /// Tests that take seconds.
    pub(crate) short: bool,
    /// Tests that wait for RoCE's retries, which take more than a minute.
    pub(crate) long: bool,
    /// A part of the tests' names.
    pub(crate) name: &'a str,
}

impl Selection<'static> {
    /// Only tests that take seconds.
    pub(crate) const SHORT: Self = Self {
        short: true,
        long: false,
        name: "",
    };
    /// Only tests that take more than a minute.
    pub(crate) const LONG: Self = Self {
        short: false,
        long: true,
        name: "",
    };
}

/// A test.
struct Case {
    name: &'static str,
    /// The devices on which it takes seconds.
    short: &'static [SoftDevice],
    /// The devices on which it takes more than a minute.
    long: &'static [SoftDevice],
    test: for<'s> fn(TestContext<'s>) -> group::TestFuture<'s>,
}

impl Case {
    /// The devices to run it on.
    fn devices(&self, selection: Selection<'_>) -> impl Iterator<Item = SoftDevice> {
        let short = self.short.iter().filter(move |_| selection.short);
        let long = self.long.iter().filter(move |_| selection.long);
        short.chain(long).copied()
    }
}

/// Lists a module's test functions with the devices on which they take seconds (`short`) and
/// those on which they take more than a minute (`long`).
macro_rules! cases {
    ($(short $short:ident, long $long:ident: $($name:ident),+ $(,)?;)+) => {
        /// The tests of this module.
        pub(super) const CASES: &[super::Case] = &[
            $($(super::Case {
                name: concat!("wire::", stringify!($name)),
                short: super::soft_device::$short,
                long: super::soft_device::$long,
                test: |context| Box::pin($name(context)),
            }),+),+
        ];
    };
}
use cases;

/// Runs the selected tests, on every kernel at the same time.
///
/// The long tests mostly wait, so they run on two pairs of guests for each kernel. Booting a
/// pair takes longer than all short tests.
pub(crate) fn run(
    workspace: &Workspace,
    guests: &[Guest],
    selection: Selection<'_>,
    totals: &mut Totals,
) {
    let program = workspace.programs().join("rdmacm-wire");
    let pairs = if selection.long {
        vec![&GROUPS[..ON_FIRST_PAIR], &GROUPS[ON_FIRST_PAIR..]]
    } else {
        vec![&GROUPS[..]]
    };
    let (sender, results) = channel();
    thread::scope(|scope| {
        for guest in guests {
            eprintln!("two guests on a wire, on the {} ...", guest.kernel);
            for groups in &pairs {
                let (sender, program) = (sender.clone(), &program);
                scope.spawn(move || run_pair(guest, program, groups, selection, &sender));
            }
        }
        drop(sender);
        for (name, result, time) in results {
            totals.record_time(&name, time);
            totals.step(&name, result);
        }
    });
}

/// A test's name, its result, and the time that it took.
type TestResult = (String, anyhow::Result<()>, Duration);

fn run_pair(
    guest: &Guest,
    program: &Path,
    groups: &[TestGroup],
    selection: Selection<'_>,
    sender: &Sender<TestResult>,
) {
    let name = |device, case: &str| format!("{}/{device}/{case}", guest.kernel.name);
    let select = |case: &'static Case| {
        let devices = case.devices(selection);
        let devices = devices.filter(|&device| name(device, case.name).contains(selection.name));
        devices.collect()
    };
    group::run(
        guest,
        program,
        groups,
        &select,
        &mut |device, case, result, time| {
            // The receiver outlives this thread.
            let _ = sender.send((name(device, case), result, time));
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_selected_once_on_each_of_its_devices() {
        for case in GROUPS.iter().flat_map(|group| group.cases) {
            let devices = |selection| case.devices(selection).map(SoftDevice::name);
            let short = devices(Selection::SHORT);
            let mut devices: Vec<_> = short.chain(devices(Selection::LONG)).collect();
            let selected = devices.len();
            devices.sort_unstable();
            devices.dedup();
            assert_eq!(devices.len(), selected, "{}", case.name);
            assert_ne!(selected, 0, "{}", case.name);
        }
    }
}
