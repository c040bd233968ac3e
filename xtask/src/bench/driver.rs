//! Builds the programs that measure, and runs them in a guest or here.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm_init::Ending;
use rdmacm_init::bench::Record;

use crate::guest::{self, Guest, Sinks};
use crate::host_packages::{self, Need};
use crate::process;
use crate::test::CLibrary;
use crate::workspace::Workspace;

/// Long enough for all workloads under emulation on a busy host.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// For two sides of 10,000 connections.
const MEMORY_MIB: u32 = 6144;
/// For what is counted: 1,000 ids or 100 queue pairs at most.
const MEMORY_TO_COUNT_MIB: u32 = 2048;
/// The program's option to run only what is counted.
pub(super) const COUNTS: &str = "--counts";
/// The devices of a guest.
const DEVICES: [&str; 2] = ["rxe=10.71.1.1", "siw=10.71.2.1"];

/// Where the workloads run.
pub(crate) enum Machine {
    /// In a guest, on its devices.
    Guest(Guest),
    /// On this machine, on the device with this address.
    Here(IpAddr),
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guest(guest) => write!(formatter, "{}, by {}", guest.kernel, guest.accelerator),
            Self::Here(address) => write!(formatter, "{address} on this machine"),
        }
    }
}

/// The program that runs workloads, and the C programs that do the same.
pub(crate) struct Driver {
    program: PathBuf,
    c: Vec<CLibrary>,
}

impl Driver {
    /// Builds everything.
    pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<Self> {
        if host_packages::is_debian() {
            host_packages::install(&Need::GUEST_SUITE)?;
        }
        let c = CLibrary::build(workspace)?;
        let own = Self::build_own(workspace)?;
        own.build_static(workspace)?;
        Ok(Self { c, ..own })
    }

    /// Builds only what measures this library.
    pub(crate) fn build_own(workspace: &Workspace) -> anyhow::Result<Self> {
        if host_packages::is_debian() {
            host_packages::install(&Need::BENCH)?;
        }
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--quiet", "--profile", "measure"]);
        process::run(cargo.args(["--package", "rdmacm-bench"]))?;
        Ok(Self {
            program: workspace.target.join("measure/rdmacm-bench"),
            c: Vec::new(),
        })
    }

    /// Builds the static program of the cold start, beside the others.
    fn build_static(&self, workspace: &Workspace) -> anyhow::Result<()> {
        let name = "rdmacm-bench-first-address";
        let built = workspace.build_static("rdmacm-bench", name, "measure")?;
        let program = self.program.with_file_name(format!("{name}-static"));
        fs::copy(built, program).context("copy the static program")?;
        Ok(())
    }

    /// Runs with these arguments; `each` receives every line of results.
    pub(crate) fn run(
        &self,
        machine: &Machine,
        arguments: &[String],
        each: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Vec<Record>> {
        let mut argv = vec![self.program.display().to_string(), "run".to_owned()];
        let here = match machine {
            Machine::Guest(_) => Vec::new(),
            Machine::Here(address) => vec![format!("here={address}")],
        };
        let devices = match machine {
            Machine::Guest(_) => DEVICES.map(str::to_owned).to_vec(),
            Machine::Here(_) => here,
        };
        for device in devices {
            argv.extend(["--device".to_owned(), device]);
        }
        for CLibrary { name, program } in &self.c {
            argv.extend(["--c".to_owned(), format!("{name}={}", program.display())]);
        }
        argv.extend_from_slice(arguments);
        let (mut records, terminal) = (Vec::new(), std::io::stderr().is_terminal());
        let mut line = |line: &str| -> anyhow::Result<()> {
            let record: Record =
                serde_json::from_str(line).with_context(|| format!("a result: {line}"))?;
            each(line);
            records.push(record);
            if terminal {
                eprint!("\r  {} results", records.len());
            }
            Ok(())
        };
        let ended = match machine {
            Machine::Guest(guest) => run_in(guest, &argv, &mut line),
            Machine::Here(_) => run_here(&argv, &mut line),
        };
        if terminal {
            eprintln!();
        }
        ended?;
        Ok(records)
    }
}

fn run_in(
    guest: &Guest,
    argv: &[String],
    line: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let memory = if argv.iter().any(|argument| argument == COUNTS) {
        MEMORY_TO_COUNT_MIB
    } else {
        MEMORY_MIB
    };
    let machine = guest::Machine {
        timeout: TIMEOUT,
        memory,
        ..guest::Machine::default()
    };
    let (mut partial, mut stderr) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            partial.extend_from_slice(bytes);
            while let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
                let text: Vec<u8> = partial.drain(..=end).collect();
                line(String::from_utf8_lossy(&text).trim_end())?;
            }
            Ok(())
        },
        stderr: &mut |bytes| {
            stderr.extend_from_slice(bytes);
            Ok(())
        },
    };
    let ending = guest::run(guest, &machine, argv, None, &mut sinks)?;
    let stderr = String::from_utf8_lossy(&stderr);
    ensure!(ending == Ending::Exit(0), "{ending:?}: {}", stderr.trim());
    Ok(())
}

fn run_here(
    argv: &[String],
    line: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (program, arguments) = argv.split_first().context("a command")?;
    let mut command = Command::new(program);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("a piped output")?;
    let read = BufReader::new(stdout)
        .lines()
        .try_for_each(|text| line(&text?));
    let status = child.wait()?;
    read?;
    ensure!(status.success(), "{}: {status}", process::line(&command));
    Ok(())
}
