//! The long tests.

use std::process::ExitCode;
use std::time::Duration;

use crate::guest::{Guest, Machine};
use crate::kernel::KernelArgs;
use crate::test::skips::Skips;
use crate::test::totals::Totals;
use crate::test::wire::{self, Selection};
use crate::test::{host, print_summary, suite};
use crate::workspace::Workspace;

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

/// Tests that run in a guest of their own.
struct Round {
    /// A part of their names.
    tests: &'static str,
    /// What sets how much they do.
    variable: &'static str,
    number: u32,
    /// How long one of them may take.
    limit: Duration,
}

// How long each takes at most on both devices of a slow machine.
const SEED: Duration = Duration::from_secs(240);
const SEED_OF_OPERATIONS: Duration = Duration::from_secs(60);
const CYCLE: Duration = Duration::from_secs(6);
const MESSAGE: Duration = Duration::from_micros(2400);
const CLIENT: Duration = Duration::from_secs(24);
const WHOLE_TEST: Duration = Duration::from_secs(12_000);
/// How long a test may take beside that, as any test, and a guest to boot.
const BEGIN: Duration = Duration::from_secs(600);

impl SoakArgs {
    fn rounds(&self) -> [Round; 7] {
        let round = |tests, variable, number, time: Duration| Round {
            tests,
            variable,
            number,
            limit: BEGIN.saturating_add(time),
        };
        let each = |tests, variable, number, time: Duration| {
            round(tests, variable, number, time.saturating_mul(number))
        };
        let (seeds, operations) = (self.seeds, self.seeds.saturating_mul(4));
        let (clients, silent) = (self.clients, "silent_clients_delay_nobody");
        [
            each("stress", "RDMACM_SEEDS", seeds, SEED),
            each(
                "data::random",
                "RDMACM_SEEDS",
                operations,
                SEED_OF_OPERATIONS,
            ),
            each("messages::leaks", "RDMACM_CYCLES", self.cycles, CYCLE),
            each("two_directions", "RDMACM_MESSAGES", self.messages, MESSAGE),
            each(silent, "RDMACM_CLIENTS", clients, CLIENT),
            // The shortest queues of librdmacm, which take the most time.
            round(
                "sequence_numbers_begin_again",
                "RDMACM_REQUESTS",
                16,
                WHOLE_TEST,
            ),
            // All messages, by rstream itself.
            round("streams::measured", "RDMACM_PART", 1, WHOLE_TEST),
        ]
    }
}

impl Round {
    fn command(&self, suite: &str) -> Vec<String> {
        let setting = format!("{}={}", self.variable, self.number);
        let limit = format!("RDMACM_TEST_LIMIT={}", self.limit.as_secs());
        ["env", &setting, &limit, suite, self.tests]
            .map(str::to_owned)
            .into()
    }

    /// The guest's timeout: a test that takes too long ends the suite before.
    fn timeout(&self) -> Duration {
        self.limit.saturating_add(BEGIN)
    }
}

/// Runs the long tests.
pub(crate) fn run(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let suite = suite::build(&workspace)?.to_string_lossy().into_owned();
    let mut totals = Totals::default();
    let mut guests = Vec::new();
    for choice in args.kernel.choices() {
        let guest = Guest::prepare(&workspace, args.kernel.prepare(&choice)?)?;
        let skips = Skips::for_kernel(&workspace, &choice)?;
        for round in args.rounds() {
            let machine = Machine {
                timeout: round.timeout(),
                ..Machine::default()
            };
            totals.phase(&format!("{choice}/{}", round.tests), |totals| {
                let skips = skips.clone().matching(round.tests);
                let command = round.command(&suite);
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SoakArgs,
    }

    const NUMBERS: [&str; 4] = ["--seeds", "--cycles", "--messages", "--clients"];

    /// The rounds with the usual numbers, and with others.
    fn rounds(numbers: [u32; 4]) -> impl Iterator<Item = (Round, Round)> {
        let mut line = vec!["soak".to_owned()];
        let usual = Line::parse_from(&line).args.rounds();
        for (name, number) in NUMBERS.into_iter().zip(numbers) {
            line.extend([name.to_owned(), number.to_string()]);
        }
        usual.into_iter().zip(Line::parse_from(line).args.rounds())
    }

    #[test]
    fn limits_follow_what_the_tests_do() {
        for (usual, twice) in rounds([100, 4000, 10_000_000, 1000]) {
            let times = twice.number / usual.number;
            let longer = twice.limit + (times - 1) * BEGIN;
            assert_eq!(longer, times * usual.limit, "{}", usual.tests);
            assert!(usual.limit >= Duration::from_secs(3 * 60 * 60));
            assert!(usual.timeout() > usual.limit);
        }
        for (_, least) in rounds([1; 4]) {
            assert!(least.limit > Duration::from_secs(60), "{}", least.tests);
        }
    }

    #[test]
    fn the_largest_numbers_have_a_limit() {
        for (usual, most) in rounds([u32::MAX; 4]) {
            assert!(most.number >= usual.number && most.timeout() >= usual.timeout());
            assert!(most.command("suite")[2].starts_with("RDMACM_TEST_LIMIT="));
        }
    }
}
