//! The guest tests, which need a real kernel and its RDMA devices.
//!
//! Each test runs once for each device that supports it, and tests of address commands
//! with both ABIs: `stock/rxe/any-family/bind::wildcard`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
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
mod command_count;
mod command_support;
mod connection;
mod connector;
mod coverage;
mod data;
mod datagrams;
mod endpoint;
mod example;
mod freed_memory;
mod getaddrinfo;
mod lifetime;
mod link;
mod listen;
mod listener;
mod malformed_answers;
mod messages;
mod migrate;
mod multicast;
mod newer_commands;
mod node;
mod options;
mod packet_delay;
mod privilege;
mod process_resources;
mod query;
mod queue_pairs;
mod rdma_core;
mod rdma_datagrams;
mod removal;
mod request;
mod resolve;
mod scenarios;
mod schedule;
mod sidr;
mod streams;
mod suite;
mod system_calls;
mod tcp;
mod unread_events;
mod verbs;

fn main() -> ExitCode {
    if let Some(code) = child::run_if_asked() {
        return code;
    }
    if std::env::var_os("RDMACM_COVERAGE").is_some() {
        return print_coverage();
    }
    if let Ok(driver) = std::env::var("RDMACM_RECORD") {
        scenarios::print_recording(&driver);
        return ExitCode::SUCCESS;
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
    if let Err(error) = packet_delay::prepare() {
        println!("the guest's own traffic cannot be led through a queue: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = connector::deadlines::prepare() {
        println!("the number of TCP retries cannot be set: {error}");
        return ExitCode::FAILURE;
    }
    schedule::record_panics();
    let (trials, threads) = schedule::plan(suite::tests(&kernel));
    arguments.test_threads = arguments.test_threads.or(Some(threads));
    if trials.iter().all(|trial| arguments.is_filtered_out(trial)) {
        println!("no test has such a name");
        return ExitCode::FAILURE;
    }
    schedule::watchdog::start();
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
