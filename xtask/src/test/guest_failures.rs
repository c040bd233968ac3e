//! Guests that fail on purpose: each failure must be reported with its cause.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::test::totals::Totals;

/// Long enough to boot and run a command on a busy host.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A name, a command that makes the guest fail, a part of the error, and the guest's timeout.
const FAILURES: [(&str, &str, &str, Duration); 4] = [
    (
        "panic",
        "echo c > /proc/sysrq-trigger; sleep 600",
        "panic",
        TIMEOUT,
    ),
    // The kernel's words: a real one would take its detector 20 seconds to notice.
    (
        "lock-up",
        "echo '<0>watchdog: BUG: soft lockup - CPU#0 stuck for 22s!' > /dev/kmsg; sleep 600",
        "soft lockup",
        TIMEOUT,
    ),
    (
        "lost",
        "echo o > /proc/sysrq-trigger; sleep 600",
        "the guest was lost",
        TIMEOUT,
    ),
    (
        "late",
        "sleep 600",
        "the wall-clock limit of 20 s",
        Duration::from_secs(20),
    ),
];

/// Causes each failure, and checks exit codes and signals.
pub(crate) fn run(guest: &Guest, suite: &Path, step: &str, totals: &mut Totals) {
    let mut ending = None;
    totals.measure(&format!("{step}/closed-listeners"), || {
        let output;
        (ending, output) = close_listeners(guest, suite)?;
        ensure!(output.ends_with(DETECTED), "{output}");
        Ok(())
    });
    totals.measure(&format!("{step}/exit-code"), || {
        ensure!(
            ending == Some(Ending::Exit(3)),
            "the guest ended with {ending:?}"
        );
        Ok(())
    });
    totals.measure(&format!("{step}/signal"), || {
        expect_ending(guest, "kill -9 $$", Ending::Signal(9))
    });
    for (name, command, cause, timeout) in FAILURES {
        totals.measure(&format!("{step}/{name}"), || {
            expect_failure(guest, command, cause, timeout)
        });
    }
}

/// The last line of the guest if the listeners detected that they were closed.
const DETECTED: &str = "closed listeners: 0\n";

/// Runs listeners whose sockets siw closes, in a guest that exits afterwards: the kernel may
/// crash when their process ends, so the guest powers off before that. Returns how the
/// command ended and its output.
fn close_listeners(guest: &Guest, suite: &Path) -> anyhow::Result<(Option<Ending>, String)> {
    let suite = suite.to_str().context("the suite's path is not UTF-8")?;
    let task = "RDMACM_TEST_CHILD=closed_listeners \"$0\" 2>&1";
    let command = format!("{task}; echo \"closed listeners: $?\"; exit 3");
    let argv = ["/bin/sh", "-c", &command, suite].map(str::to_owned);
    let mut output = Vec::new();
    let ending = run_argv(guest, &argv, TIMEOUT, &mut output)?;
    Ok((Some(ending), String::from_utf8_lossy(&output).into_owned()))
}

fn expect_ending(guest: &Guest, command: &str, expected: Ending) -> anyhow::Result<()> {
    let ending = run_shell(guest, command, TIMEOUT)?;
    ensure!(ending == expected, "`{command}` ended with {ending:?}");
    Ok(())
}

fn expect_failure(
    guest: &Guest,
    command: &str,
    cause: &str,
    timeout: Duration,
) -> anyhow::Result<()> {
    match run_shell(guest, command, timeout) {
        Ok(ending) => bail!("`{command}` did not make the guest fail: {ending:?}"),
        Err(error) => {
            // The other lines are the end of the console, which may contain anything.
            let text = format!("{error:#}");
            let message = text.lines().next().unwrap_or_default();
            ensure!(
                message.contains(cause),
                "the error of `{command}` lacks {cause:?}: {text}"
            );
            Ok(())
        }
    }
}

fn run_shell(guest: &Guest, command: &str, timeout: Duration) -> anyhow::Result<Ending> {
    let argv = ["/bin/sh", "-c", command].map(str::to_owned);
    run_argv(guest, &argv, timeout, &mut Vec::new())
}

fn run_argv(
    guest: &Guest,
    argv: &[String],
    timeout: Duration,
    output: &mut Vec<u8>,
) -> anyhow::Result<Ending> {
    let machine = Machine {
        timeout,
        ..Machine::default()
    };
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            output.extend_from_slice(bytes);
            Ok(())
        },
        stderr: &mut |_| Ok(()),
    };
    guest::run(guest, &machine, argv, None, &mut sinks)
}
