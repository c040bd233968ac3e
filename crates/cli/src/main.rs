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
mod perf;
mod ping;
mod resolve;
mod runtime;
mod serve;
mod served;
mod table;
mod talk;
mod terminal;

use args::{Args, Task};

/// What a task has to say: the text for standard output, what went wrong for
/// standard error, and whether it succeeded.
struct Outcome {
    output: String,
    complaint: Option<String>,
    success: bool,
}

impl Outcome {
    /// Of a task that did not even begin.
    #[expect(clippy::needless_pass_by_value, reason = "the error's way ends here")]
    fn of_error(error: io::Error) -> Self {
        Self {
            output: String::new(),
            complaint: Some(error.to_string()),
            success: false,
        }
    }
}

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
