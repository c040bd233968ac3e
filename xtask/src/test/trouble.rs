//! Guests in trouble, made on purpose: each kind must be told for what it is.

use std::time::Duration;

use anyhow::{bail, ensure};
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
pub(crate) fn run(guest: &Guest, step: &str, totals: &mut Totals) {
    totals.measure(&format!("{step}/exit-code"), || {
        ends(guest, "exit 3", Ending::Exit(3))
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
    let machine = Machine {
        timeout,
        ..Machine::default()
    };
    let mut sinks = Sinks {
        stdout: &mut |_| Ok(()),
        stderr: &mut |_| Ok(()),
    };
    guest::run(guest, &machine, &argv, None, &mut sinks)
}
