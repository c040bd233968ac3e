//! The `rdmacm` command: resolves names for RDMA, lists RDMA devices, and tests and
//! measures connections.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

mod args;
mod connection_path;
mod devices;
mod endpoint;
mod exchange;
mod failure;
mod interrupt;
mod json;
mod latencies;
mod message;
mod outcome;
mod perf;
mod ping;
mod refusal;
mod resolve;
mod runtime;
mod serve;
mod server_report;
mod table;
mod terminal;
mod until_closed;

use args::{Args, Task};
use outcome::Outcome;

fn main() -> ExitCode {
    // Bad usage ends here with exit code 2.
    let outcome = match Args::parse().task {
        Task::Resolve(args) => resolve::run(&args),
        Task::Devices(args) => devices::run(&args),
        Task::Ping(args) => ping::run(&args),
        Task::Perf(args) => perf::run(&args),
    };
    match print(&outcome) {
        Ok(()) if outcome.success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Prints the outcome, its output in one write.
fn print(outcome: &Outcome) -> io::Result<()> {
    if let Some(error_text) = &outcome.error_text {
        io::stderr().write_all(format!("rdmacm: {error_text}\n").as_bytes())?;
    }
    if outcome.output.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(outcome.output.as_bytes())?;
    stdout.flush()
}
