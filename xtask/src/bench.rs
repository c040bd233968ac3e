//! Measures the library, librdmacm and bare writes, and writes the report.

mod before;
mod check;
mod counts;
mod driver;
mod growth;
mod instructions;
mod page;
mod plot;
mod results;
mod statistics;
mod svg;
mod table;

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

pub(crate) use self::check::run as check;
use self::driver::{Driver, Machine};
use self::results::Results;
use crate::guest::Guest;
use crate::kernel::{KernelArgs, Role};
use crate::workspace::Workspace;

/// Measures this library, librdmacm and bare writes doing the same work: times, instructions,
/// system calls, allocations and memory; on the new kernel, or the one that `--kernel`
/// chooses. Without a filter, on a guest, writes docs/benchmarks.md and docs/instructions.md
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    kernel: KernelArgs,
    /// On this machine instead of a guest, on the RDMA device with this address
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["kernel", "modules", "update"])]
    here: Option<IpAddr>,
    /// Prints a line of JSON for each result instead of tables
    #[arg(long)]
    json: bool,
    /// How often each workload is timed
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    rounds: u32,
    /// Only writes the counts that `cargo xtask test` compares with, tests/bench/counts.txt
    #[arg(long, conflicts_with_all = ["json", "filters", "kernel", "modules"])]
    update: bool,
    /// Only workloads whose names contain one of these texts
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    if args.update {
        let guest = guest(&workspace, args)?;
        println!("{}", check::update(&workspace, guest)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let driver = Driver::build(&workspace)?;
    let machine = match args.here {
        Some(address) => Machine::Here(address),
        None => Machine::Guest(guest(&workspace, args)?),
    };
    let mut print = |line: &str| {
        if args.json {
            println!("{line}");
        }
    };
    let rounds = args.rounds.to_string();
    let arguments: Vec<_> = ["--rounds", &rounds]
        .into_iter()
        .map(str::to_owned)
        .collect();
    let records = driver.run(
        &machine,
        &[&arguments, &args.filters[..]].concat(),
        &mut print,
    )?;
    let results = Results::new(records);
    ensure!(
        !results.rows.is_empty(),
        "nothing was measured: {:?}",
        results.failures
    );
    if !args.json {
        println!("{}", page::tables(&results));
    }
    if args.filters.is_empty() && args.here.is_none() && !args.json {
        let written = page::write(&workspace, &results, &machine.to_string());
        println!("{}", written.context("write the report")?.display());
    }
    for failure in &results.failures {
        eprintln!("{failure}");
    }
    Ok(if results.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn guest(workspace: &Workspace, args: &Args) -> anyhow::Result<Guest> {
    let choice = args.kernel.choice_or(Role::New);
    Guest::prepare(workspace, args.kernel.prepare(&choice)?)
}
