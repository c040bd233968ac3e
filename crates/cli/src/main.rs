//! The `rdmacm` command: resolves names for RDMA, lists RDMA devices, tests and
//! measures connections, and copies data through them.
#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

use std::io::{self, Write};

use clap::Parser;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

mod args;
mod cat;
mod connect_error;
mod connection_path;
mod devices;
mod endpoint;
#[cfg(all(target_env = "gnu", not(test)))]
mod entry;
mod exchange;
mod failure;
mod interrupt;
mod json;
mod keep_alive;
mod latencies;
mod message;
mod outcome;
mod perf;
mod ping;
mod resolve;
mod runtime;
mod serve;
mod server_report;
mod table;
mod terminal;
mod until_closed;

use args::{Args, Task};

/// The entry where the C library is not GNU's.
#[cfg(not(target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    run().into()
}

/// Does the task of the arguments, and returns the exit code.
#[cfg_attr(test, expect(dead_code, reason = "tests have an entry of their own"))]
fn run() -> u8 {
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Bad usage ends here with exit code 2.
        Err(error) if error.use_stderr() => error.exit(),
        Err(help) => return exit_code(true, &print_help(&help)),
    };
    let outcome = match args.task {
        Task::Resolve(args) => resolve::run(&args),
        Task::Devices(args) => devices::run(&args),
        Task::Ping(args) => ping::run(&args),
        Task::Perf(args) => perf::run(&args),
        Task::Cat(args) => cat::run(&args),
    };
    if let Some(error_text) = &outcome.error_text {
        terminal::print_error(error_text);
    }
    exit_code(outcome.success, &print(&outcome.output))
}

/// The exit code. Says why the output was not printed, which is a failure.
fn exit_code(success: bool, printed: &io::Result<()>) -> u8 {
    match printed {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => terminal::print_error(&format!("standard output: {error}")),
        Ok(()) => {}
    }
    u8::from(printed.is_err() || !success)
}

/// Prints what is no task: the help, or the version.
fn print_help(help: &clap::Error) -> io::Result<()> {
    check_stdout()?;
    help.print()?;
    io::stdout().flush()
}

/// Whether standard output can be written to: the standard library takes what it writes to one
/// that is only open for reading for written.
///
/// # Errors
/// `EBADF`, as `write(2)` would return.
fn check_stdout() -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(io::stdout(), FcntlArg::F_GETFL)?);
    if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(Errno::EBADF.into());
    }
    Ok(())
}

/// Prints the output of a task in one write.
fn print(output: &str) -> io::Result<()> {
    if output.is_empty() {
        return Ok(());
    }
    check_stdout()?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(output.as_bytes())?;
    stdout.flush()
}
