//! Where this checkout and its build products lie.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;

use crate::process;

/// The triple of the hosts and guests this works on.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What guests run. With the whole workspace and its examples, every crate has the
/// features that `cargo test --workspace` gives it, and is compiled once for both. This
/// program has them not, and would be compiled once more.
const PROGRAMS: [&str; 8] = [
    "build",
    "--quiet",
    "--workspace",
    "--examples",
    "--bin",
    "rdmacm",
    "--bin",
    "rdmacm-wire",
];

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

    /// Builds the programs and examples that guests run.
    pub(crate) fn build_programs(&self) -> anyhow::Result<()> {
        process::run(self.cargo().args(PROGRAMS))
    }

    /// Builds the command alone.
    pub(crate) fn build_command(&self) -> anyhow::Result<()> {
        let mut cargo = self.cargo();
        process::run(cargo.args(["build", "--quiet", "--package", "rdmacm-cli"]))
    }

    /// Builds those programs together with a test program; its path.
    pub(crate) fn build_test(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.args(PROGRAMS).args(["--test", name]);
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.stderr(Stdio::inherit());
        executable(&process::output(&mut cargo)?, name)
            .with_context(|| format!("cargo built no test program {name}"))
    }

    /// Builds a program that no library is loaded for; its path.
    pub(crate) fn build_static(&self, package: &str, program: &str) -> anyhow::Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.args(["build", "--quiet", "--package", package]);
        // Named, although it is the host's own: without it, build scripts would be
        // static as well, and built once more.
        process::run(cargo.args(["--target", TARGET]))?;
        Ok(self.target.join(TARGET).join("debug").join(program))
    }

    /// Where `cargo build` puts programs.
    pub(crate) fn programs(&self) -> PathBuf {
        self.target.join("debug")
    }
}

/// One of cargo's messages; most have no executable.
#[derive(Debug, Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

fn executable(messages: &str, test: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| {
            message.target.as_ref().is_some_and(|target| {
                target.name == test && target.kind.iter().any(|kind| kind == "test")
            })
        })
        .find_map(|message| message.executable)
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"x","kind":["lib"]},"executable":null}
{"reason":"compiler-artifact","target":{"name":"guest","kind":["test"]},"executable":"/t/guest-1"}
{"reason":"build-finished","success":true}"#;
        let found = |name| executable(messages, name);
        assert_eq!(found("guest"), Some(PathBuf::from("/t/guest-1")));
        assert_eq!(found("x"), None);
        assert_eq!(executable("", "guest"), None);
    }
}
