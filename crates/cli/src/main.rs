//! The `rdmacm` command: what RDMA can do with a name, which RDMA devices there
//! are, and how data get from one to another.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

mod args;
mod attend;
mod devices;
mod endpoint;
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
mod served;
mod table;
mod talk;
mod terminal;
mod way;

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
    match tell(&outcome) {
        Ok(()) if outcome.success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// One write for the whole answer.
fn tell(outcome: &Outcome) -> io::Result<()> {
    if let Some(complaint) = &outcome.complaint {
        io::stderr().write_all(format!("rdmacm: {complaint}\n").as_bytes())?;
    }
    if outcome.output.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(outcome.output.as_bytes())?;
    stdout.flush()
}
