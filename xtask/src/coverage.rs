//! Writes and checks `tests/coverage.md`, which the guest suite prints.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::process;
use crate::test::SUITE;
use crate::workspace::Workspace;

/// The page, relative to the workspace's root.
const PAGE: &str = "tests/coverage.md";
/// The environment variable that makes the suite print the page and exit.
const PRINT: &str = "RDMACM_COVERAGE";

/// Writes the page.
pub(crate) fn write() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let path = path(&workspace);
    fs::write(&path, current(&workspace)?).with_context(|| format!("write {}", path.display()))?;
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Fails if the page is out of date.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let path = path(workspace);
    let page = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let is_current = page == current(workspace)?;
    ensure!(
        is_current,
        "{PAGE} is out of date: run `cargo xtask coverage`"
    );
    Ok(())
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join(PAGE)
}

/// The page for the suite's current tests.
fn current(workspace: &Workspace) -> anyhow::Result<String> {
    let suite = workspace.build_test(SUITE)?;
    process::output(Command::new(suite).env(PRINT, "1"))
}
