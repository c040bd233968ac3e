//! What does a workload: this library, a release of the C library, TCP, or nothing but writes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use rdmacm_init::bench::Measured;

use crate::plan::Measure;
use crate::run::process;
use crate::task::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Own,
    C,
    Bare,
    Tcp,
}

/// A library and the program that measures it.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    program: PathBuf,
    kind: Kind,
}

impl Library {
    pub(crate) fn own(program: &Path) -> Self {
        Self::new("rdmacm", program, Kind::Own)
    }

    pub(crate) fn c(name: &str, program: &Path) -> Self {
        Self::new(name, program, Kind::C)
    }

    pub(crate) fn bare(program: &Path) -> Self {
        Self::new("bare", program, Kind::Bare)
    }

    pub(crate) fn tcp(program: &Path) -> Self {
        Self::new("tcp", program, Kind::Tcp)
    }

    fn new(name: &str, program: &Path, kind: Kind) -> Self {
        let (name, program) = (name.to_owned(), program.to_owned());
        Self {
            name,
            program,
            kind,
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.kind == Kind::Own
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.kind == Kind::Tcp
    }

    /// Its workload for this measure, if it has one.
    pub(crate) fn workload(&self, measure: &Measure) -> Option<&'static str> {
        match self.kind {
            Kind::Own => Some(measure.workload),
            Kind::C => measure.c,
            Kind::Bare => measure.bare,
            Kind::Tcp => measure.tcp,
        }
    }

    /// The command line of a process for this measure. This library has a program of its own
    /// for it beside this one; C programs do the workload once.
    pub(crate) fn process(&self, measure: &Measure, address: &str) -> Option<Vec<OsString>> {
        match self.kind {
            Kind::Own => {
                let name = format!("rdmacm-bench-{}", measure.workload);
                let program = self.program.with_file_name(name);
                program
                    .exists()
                    .then(|| vec![program.into(), address.into()])
            }
            Kind::C => {
                let words = ["work", measure.c?, address, "0", "1"].map(OsString::from);
                Some([&[self.program.clone().into()], &words[..]].concat())
            }
            Kind::Bare | Kind::Tcp => None,
        }
    }

    /// The command that serves a workload on a device.
    pub(crate) fn peer(&self, workload: &str, address: &str) -> Command {
        let mut command = many_files();
        command.arg(&self.program).args(["peer", workload, address]);
        command
    }

    /// The command that does these tasks; `under` starts a program that watches it.
    pub(crate) fn work(&self, under: &[&str], tasks: &[Task]) -> Command {
        let mut command = many_files();
        command.args(under).arg(&self.program).arg("work");
        for task in tasks {
            task.add_to(&mut command);
        }
        command
    }
}

/// Starts a command that may open as many files as the system allows.
fn many_files() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n $(ulimit -Hn); exec \"$@\"", "sh"]);
    command
}

/// Runs a command that does these tasks, and returns what it has measured of itself.
pub(crate) fn measured(command: Command, tasks: &[Task]) -> anyhow::Result<Vec<Measured>> {
    let mut lines = Vec::new();
    let done = process::run(command, |line| lines.push(line.to_owned()));
    done.with_context(|| match tasks.get(lines.len()) {
        Some(task) => task.to_string(),
        None => "after the last workload".to_owned(),
    })?;
    ensure!(
        lines.len() == tasks.len(),
        "{} results of {}",
        lines.len(),
        tasks.len()
    );
    let measured = lines
        .iter()
        .map(|line| serde_json::from_str(line).context("what a workload printed"));
    measured.collect()
}
