//! Guests that fail on purpose: each failure must be reported as what it is.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::test::totals::Totals;

/// Long enough to boot and do what is asked, on the busiest of hosts.
const ENOUGH: Duration = Duration::from_secs(300);

/// A command that brings trouble, what must be said of it, and the limit.
const TROUBLE: [(&str, &str, &str, Duration); 3] = [
    (
        "panic",
        "echo c > /proc/sysrq-trigger; sleep 600",
        "panic",
        ENOUGH,
    ),
    (
        "lost",
        "echo o > /proc/sysrq-trigger; sleep 600",
        "the guest was lost",
        ENOUGH,
    ),
    (
        "late",
        "sleep 600",
        "the wall-clock limit of 20 s",
        Duration::from_secs(20),
    ),
];

/// Makes each kind of trouble, and looks at exit codes and signals.
pub(crate) fn run(guest: &Guest, suite: &Path, step: &str, totals: &mut Totals) {
    let mut ending = None;
    totals.measure(&format!("{step}/closed-listeners"), || {
        let output;
        (ending, output) = lose_listeners(guest, suite)?;
        ensure!(output.ends_with(NOTICED), "{output}");
        Ok(())
    });
    totals.measure(&format!("{step}/exit-code"), || {
        ensure!(ending == Some(Ending::Exit(3)), "it ended with {ending:?}");
        Ok(())
    });
    totals.measure(&format!("{step}/signal"), || {
        ends(guest, "kill -9 $$", Ending::Signal(9))
    });
    for (name, command, says, limit) in TROUBLE {
        totals.measure(&format!("{step}/{name}"), || {
            fails(guest, command, says, limit)
        });
    }
}

/// What the guest writes at last where the listeners noticed.
const NOTICED: &str = "closed listeners: 0\n";

/// Listeners whose socket siw closes, in a guest that has nothing else to do than to exit:
/// the kernel may not survive the end of their process, which the guest's end precedes.
/// How the guest ended, and what was written.
fn lose_listeners(guest: &Guest, suite: &Path) -> anyhow::Result<(Option<Ending>, String)> {
    let suite = suite.to_str().context("the suite's path is no text")?;
    let task = "RDMACM_TEST_CHILD=closed_listeners \"$0\" 2>&1";
    let command = format!("{task}; echo \"closed listeners: $?\"; exit 3");
    let argv = ["/bin/sh", "-c", &command, suite].map(str::to_owned);
    let mut output = Vec::new();
    let ending = play_argv(guest, &argv, ENOUGH, &mut output)?;
    Ok((Some(ending), String::from_utf8_lossy(&output).into_owned()))
}

fn ends(guest: &Guest, command: &str, expected: Ending) -> anyhow::Result<()> {
    let ending = play(guest, command, ENOUGH)?;
    ensure!(ending == expected, "`{command}` ended with {ending:?}");
    Ok(())
}

fn fails(guest: &Guest, command: &str, says: &str, limit: Duration) -> anyhow::Result<()> {
    match play(guest, command, limit) {
        Ok(ending) => bail!("`{command}` was no trouble: {ending:?}"),
        Err(error) => {
            // The console's tail below it may say anything.
            let text = format!("{error:#}");
            let told = text.lines().next().unwrap_or_default();
            ensure!(
                told.contains(says),
                "`{command}` is told without {says:?}: {text}"
            );
            Ok(())
        }
    }
}

fn play(guest: &Guest, command: &str, timeout: Duration) -> anyhow::Result<Ending> {
    let argv = ["/bin/sh", "-c", command].map(str::to_owned);
    play_argv(guest, &argv, timeout, &mut Vec::new())
}

fn play_argv(
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
