//! Measures the library and librdmacm doing the same work on the same device.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program prints its results"
)]

mod allocations;
mod meter;
mod peer;
mod plan;
mod run;
mod task;
mod work;

use std::net::IpAddr;

use clap::{Parser, Subcommand};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::meter::Meter;
use crate::task::Task;

/// Each connection of the C library has an event channel and a completion channel.
const FILES: u64 = 65_536;

#[derive(Debug, Parser)]
#[command(name = "rdmacm-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Does workloads one after the other, and prints what each has measured of itself
    Work {
        /// For each workload its name, the address of a device, the port of its peer, and the
        /// number of operations
        #[arg(required = true, value_name = "NAME ADDRESS PORT COUNT")]
        words: Vec<String>,
    },
    /// Serves a workload until it is killed; prints its port
    Peer {
        name: String,
        address: IpAddr,
    },
    Run(run::Args),
}

fn main() -> anyhow::Result<()> {
    allocations::count();
    raise_limit()?;
    match Arguments::parse().command {
        Command::Work { words } => Task::parse(&words)?.iter().try_for_each(work),
        Command::Peer { name, address } => peer::serve(address, work::find(&name)?.peer),
        Command::Run(args) => run::run(&args),
    }
}

/// Allows as many open files as 10,000 connections need, or as many as this user may have.
fn raise_limit() -> anyhow::Result<()> {
    if setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES).is_ok() {
        return Ok(());
    }
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

fn work(task: &Task) -> anyhow::Result<()> {
    let mut meter = Meter::default();
    (work::find(&task.workload)?.run)(task.target, task.count, &mut meter)?;
    let measured = meter.measured();
    println!("{}", serde_json::to_string(&measured)?);
    meter::workload_end(&measured);
    Ok(())
}
