//! The guest tests: what needs a real kernel and its RDMA devices.
//!
//! Every test runs once for each device it makes sense for and, where it sends
//! address commands, in both dialects: `stock/rxe/any-family/bind::wildcard`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on panics"
)]

use std::process::ExitCode;

use libtest_mimic::Arguments;

mod acm;
mod addrinfo;
mod allocation;
mod bind;
mod c_library;
mod c_tools;
mod channel;
mod child;
mod command;
mod connection;
mod coverage;
mod data;
mod datagrams;
mod dialect;
mod example;
mod face;
mod garbled;
mod graves;
mod held_back;
mod judge;
mod kept;
mod lifetime;
mod link;
mod listen;
mod migrate;
mod multicast;
mod newer;
mod options;
mod oracle;
mod privilege;
mod query;
mod rdma_core;
mod removal;
mod request;
mod resolve;
mod schedule;
mod sidr;
mod suite;
mod system_calls;
mod verbs;
mod writes;

fn main() -> ExitCode {
    if let Some(code) = child::run_if_asked() {
        return code;
    }
    if std::env::var_os("RDMACM_COVERAGE").is_some() {
        return print_coverage();
    }
    let Ok(kernel) = std::env::var("RDMACM_KERNEL") else {
        println!("this suite runs in a guest: cargo xtask test");
        return ExitCode::FAILURE;
    };
    let mut arguments = Arguments::from_args();
    if arguments.list {
        let (trials, _) = schedule::plan(suite::tests(&kernel));
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    if let Err(error) = held_back::prepare() {
        println!("the guest's own traffic cannot be led through a queue: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = face::deadlines::prepare() {
        println!("TCP cannot be told when to give up: {error}");
        return ExitCode::FAILURE;
    }
    let (trials, threads) = schedule::plan(suite::tests(&kernel));
    arguments.test_threads = arguments.test_threads.or(Some(threads));
    if trials.iter().all(|trial| arguments.is_filtered_out(trial)) {
        println!("no test has such a name");
        return ExitCode::FAILURE;
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    schedule::print_times();
    conclusion.exit_code()
}

/// Prints `tests/coverage.md`, on any machine.
fn print_coverage() -> ExitCode {
    match coverage::page() {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
