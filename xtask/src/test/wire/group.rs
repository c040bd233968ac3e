//! Runs the tests of a group at the same time on one pair of guests.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::guest::Guest;

use super::Case;
use super::pair::Pair;
use super::soft_device::SoftDevice;
use super::test_context::{SharedPair, TestContext};

/// Tests that run at the same time, because each mostly waits.
pub(super) struct TestGroup {
    /// What happens to the far guest. Each action is performed when all unfinished tests
    /// wait for it.
    pub(super) actions: &'static [GuestAction],
    pub(super) cases: &'static [Case],
}

/// What happens to the far guest.
#[derive(Clone, Copy, Debug)]
pub(super) enum GuestAction {
    /// QEMU stops its processors and clocks.
    Freeze,
    /// QEMU lets it run again.
    Resume,
    /// QEMU is killed.
    Kill,
    /// Another guest boots at its addresses, without a network.
    Restart,
    /// Its network cards are attached to the wires.
    AttachNetwork,
    /// Nothing happens: the tests only wait for each other.
    None,
}

/// A running test.
pub(super) type TestFuture<'s> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 's>>;

/// Returns the devices on which to run a test.
type SelectDevices<'a> = &'a dyn Fn(&'static Case) -> Vec<SoftDevice>;

/// Receives each result and the time that the test took.
type Report<'a> = &'a mut dyn FnMut(SoftDevice, &str, anyhow::Result<()>, Duration);

/// A test without a result.
struct UnfinishedTest<T> {
    device: SoftDevice,
    case: &'static Case,
    test: T,
}

/// Boots a pair of guests and runs the selected tests of every group on it. Reports a
/// result of each test, also if a guest fails.
pub(super) fn run(
    guest: &Guest,
    program: &Path,
    groups: &[TestGroup],
    select: SelectDevices<'_>,
    report: Report<'_>,
) {
    let mut groups: Vec<_> = groups
        .iter()
        .map(|group| (group, group.selected(select)))
        .collect();
    groups.retain(|(_, tests)| !tests.is_empty());
    if groups.is_empty() {
        return;
    }
    let began = Instant::now();
    let mut pair = Pair::start(guest, program).map(SharedPair::new);
    for (group, tests) in groups {
        match pair {
            Ok(shared) => {
                pair = run_group(&shared, group.actions, tests, report).map(|()| shared);
            }
            Err(ref error) => fail_all(tests, error, began, report),
        }
    }
    if let Ok(pair) = pair {
        if let Err(error) = pair.shut_down() {
            report(SoftDevice::Rxe, "wire/end", Err(error), began.elapsed());
        }
    }
}

impl TestGroup {
    fn selected(&self, select: SelectDevices<'_>) -> Vec<UnfinishedTest<()>> {
        let cases = self.cases.iter();
        let all = cases.flat_map(|case| select(case).into_iter().map(move |device| (device, case)));
        all.map(|(device, case)| UnfinishedTest {
            device,
            case,
            test: (),
        })
        .collect()
    }
}

/// Reports a failure of a guest as the result of every unfinished test.
fn fail_all<T>(
    tests: Vec<UnfinishedTest<T>>,
    error: &anyhow::Error,
    began: Instant,
    report: Report<'_>,
) {
    for UnfinishedTest { device, case, .. } in tests {
        let failed = Err(anyhow!("{error:#}"));
        report(device, case.name, failed, began.elapsed());
    }
}

/// Runs a group to its end.
fn run_group(
    shared: &SharedPair,
    actions: &[GuestAction],
    tests: Vec<UnfinishedTest<()>>,
    report: Report<'_>,
) -> anyhow::Result<()> {
    shared.start_group();
    let began = Instant::now();
    let started = |UnfinishedTest { device, case, .. }: UnfinishedTest<()>| UnfinishedTest {
        device,
        case,
        test: (case.test)(TestContext { shared, device }),
    };
    let mut tests: Vec<_> = tests.into_iter().map(started).collect();
    let mut actions = actions.iter();
    loop {
        poll_tests(&mut tests, began, report);
        let next = if tests.len() > shared.waiting() {
            shared.receive()
        } else if let Some(action) = actions.next() {
            shared.perform(*action)
        } else if tests.is_empty() {
            return Ok(());
        } else {
            Err(anyhow!("a test waits for an action that its group lacks"))
        };
        if let Err(error) = next {
            fail_all(tests, &error, began, report);
            return Err(error);
        }
    }
}

/// Polls each test once and reports those that have finished.
fn poll_tests(tests: &mut Vec<UnfinishedTest<TestFuture<'_>>>, began: Instant, report: Report<'_>) {
    let mut context = Context::from_waker(Waker::noop());
    tests.retain_mut(|one| match one.test.as_mut().poll(&mut context) {
        Poll::Pending => true,
        Poll::Ready(result) => {
            report(one.device, one.case.name, result, began.elapsed());
            false
        }
    });
}
