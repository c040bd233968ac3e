//! Writes the transcripts of librdmacm that the simulator is compared with.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::kernel::{Kernel, Role};
use crate::test;
use crate::workspace::Workspace;

/// Where they are, relative to the workspace's root.
const FOLDER: &str = "tests/scenarios/recorded";
/// The devices, by their drivers.
const DRIVERS: [&str; 2] = ["rxe", "siw"];
/// The environment variable that makes the suite print the transcripts of a device.
const DRIVER: &str = "RDMACM_RECORD";

/// Runs the scenarios with librdmacm on the new kernel, and writes its answers.
pub(crate) fn write() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    workspace.build_programs()?;
    let suite = test::build_suite(&workspace)?
        .to_string_lossy()
        .into_owned();
    let kernel = Kernel::prepare(Role::New, false)?;
    let guest = Guest::prepare(&workspace, kernel)?;
    for driver in DRIVERS {
        let path = workspace
            .root
            .join(FOLDER)
            .join(driver)
            .with_extension("txt");
        let recording = record(&guest, &suite, driver)?;
        fs::write(&path, recording).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn record(guest: &Guest, suite: &str, driver: &str) -> anyhow::Result<Vec<u8>> {
    let variable = format!("{DRIVER}={driver}");
    let command = ["/usr/bin/env".to_owned(), variable, suite.to_owned()];
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            stdout.extend_from_slice(bytes);
            Ok(())
        },
        stderr: &mut |bytes| {
            stderr.extend_from_slice(bytes);
            Ok(())
        },
    };
    let ending = guest::run(guest, &Machine::default(), &command, None, &mut sinks)?;
    let stderr = String::from_utf8_lossy(&stderr);
    ensure!(matches!(ending, Ending::Exit(0)), "{driver}: {stderr}");
    Ok(stdout)
}
