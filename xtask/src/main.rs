//! Kernels, virtual machines, tests and checks of this repository.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program prints its results"
)]

mod abi;
mod abi_check;
mod bench;
mod coverage;
mod demo;
mod guest;
mod host_packages;
mod kernel;
mod process;
mod rdma_core;
mod record;
mod terminal;
mod test;
mod vm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::kernel::{Kernel, Role};
use crate::rdma_core::RdmaCore;

/// The exit code for a guest or a task that failed as such.
const FAILED: u8 = 125;

/// Kernels, virtual machines, tests and checks of this repository.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Prepares the kernels that guests run and the newest rdma-core, in the user's
    /// cache
    Kernel {
        /// Only this kernel
        #[arg(long, value_parser = parse_role)]
        kernel: Option<Role>,
        /// Checks the mirror for newer versions than the cached ones
        #[arg(long)]
        update: bool,
    },
    Vm(vm::Args),
    Test(test::Args),
    Wire(test::WireArgs),
    Soak(test::SoakArgs),
    Bench(bench::Args),
    Demo(demo::Args),
    /// Compares the structures and constants of `rdmacm-abi` with C headers: the installed
    /// ones and those of the new kernel
    AbiCheck,
    /// Writes tests/coverage.md: the tests that cover each ucma command and event
    Coverage,
    /// Writes tests/scenarios/recorded: what librdmacm answers to the scenarios on the new
    /// kernel
    Record,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Kernel { kernel, update } => prepare(kernel, update),
        Task::Vm(args) => vm::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Wire(args) => test::run_wire(&args),
        Task::Soak(args) => test::run_soak(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Demo(args) => demo::run(&args),
        Task::AbiCheck => abi::run(),
        Task::Coverage => coverage::write(),
        Task::Record => record::write(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(FAILED)
    })
}

fn prepare(role: Option<Role>, update: bool) -> anyhow::Result<ExitCode> {
    for role in Role::ALL
        .into_iter()
        .filter(|one| role.is_none_or(|role| role == *one))
    {
        println!("{}", Kernel::prepare(role, update)?);
    }
    if role.is_none() {
        println!("{}", RdmaCore::prepare(update)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_role(text: &str) -> Result<Role, String> {
    Role::ALL
        .into_iter()
        .find(|role| role.as_str() == text)
        .ok_or_else(|| format!("`{text}` is neither `stock` nor `new`"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
        let demo = |words: &[&str]| {
            let words = ["xtask", "demo"].iter().chain(words);
            Arguments::try_parse_from(words).is_ok()
        };
        assert!(demo(&[]) && demo(&["--all"]) && demo(&["--kernel", "new"]));
        assert!(!demo(&["--all", "--kernel", "new"]));
        assert!(!demo(&["--modules", "/"]));
    }
}
