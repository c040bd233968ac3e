//! Where this checkout and its build products lie.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use crate::process;

/// The checkout that this program was started from.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The checkout's root.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Cargo's target folder, which may lie elsewhere.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let mut cargo = cargo();
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        cargo
            .arg("--manifest-path")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        serde_json::from_str(&process::output(&mut cargo)?).context("understand cargo's metadata")
    }

    /// A cargo command in this checkout.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.root);
        cargo
    }

    /// Builds every program and example, for guests to run.
    pub(crate) fn build_programs(&self) -> anyhow::Result<()> {
        let mut cargo = self.cargo();
        process::run(cargo.args(["build", "--quiet", "--workspace", "--bins", "--examples"]))
    }

    /// Where `cargo build` puts programs.
    pub(crate) fn programs(&self) -> PathBuf {
        self.target.join("debug")
    }
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
