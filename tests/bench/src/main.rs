//! Measures the library and librdmacm doing the same work on the same device.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program prints its results"
)]

mod allocations;
mod meter;
mod peer;
mod work;

use std::net::IpAddr;

use clap::{Parser, Subcommand};

use crate::meter::Meter;
use crate::work::Place;

#[derive(Debug, Parser)]
#[command(name = "rdmacm-bench")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs a workload, and prints what it has measured of itself
    Work {
        name: String,
        address: IpAddr,
        port: u16,
        count: u32,
    },
    /// Serves a workload until it is killed; prints its port
    Peer { name: String, address: IpAddr },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Work {
            name,
            address,
            port,
            count,
        } => {
            let mut meter = Meter::default();
            let place = Place { address, port };
            (work::find(&name)?.run)(place, count, &mut meter)?;
            println!("{}", serde_json::to_string(&meter.measured())?);
            Ok(())
        }
        Task::Peer { name, address } => peer::serve(address, work::find(&name)?.peer),
    }
}
