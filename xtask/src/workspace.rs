//! The checkout and its build products.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;

use crate::process;

/// The target triple of hosts and guests.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds what guests run. With `--workspace` and `--examples`, every crate has the same
/// features as in `cargo test --workspace`, so that it is compiled only once.
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

/// The checkout that contains this program.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The checkout's root.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    /// The packages of the checkout.
    pub(crate) packages: Vec<Package>,
}

/// A package of the checkout.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The registries that it may go to; `None` if to any.
    publish: Option<Vec<String>>,
    features: BTreeMap<String, Vec<String>>,
}

impl Package {
    /// Returns whether other projects can depend on it.
    pub(crate) const fn is_published(&self) -> bool {
        self.publish.is_none()
    }

    /// Its features, without `default`.
    pub(crate) fn features(&self) -> impl Iterator<Item = &String> {
        self.features.keys().filter(|name| *name != "default")
    }
}

impl Workspace {
    /// Gets the paths from cargo.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let mut cargo = cargo();
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        cargo
            .arg("--manifest-path")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        serde_json::from_str(&process::output(&mut cargo)?)
            .context("parse the output of cargo metadata")
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

    /// Builds only the command.
    pub(crate) fn build_command(&self) -> anyhow::Result<()> {
        let mut cargo = self.cargo();
        process::run(cargo.args(["build", "--quiet", "--package", "rdmacm-cli"]))
    }

    /// Builds those programs and a test program, and returns the test program's path.
    pub(crate) fn build_test(&self, name: &str) -> anyhow::Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.args(PROGRAMS).args(["--test", name]);
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.stderr(Stdio::inherit());
        executable(&process::output(&mut cargo)?, name)
            .with_context(|| format!("cargo built no test program {name}"))
    }

    /// Builds a static program with one of cargo's profiles, and returns its path.
    pub(crate) fn build_static(
        &self,
        package: &str,
        program: &str,
        profile: &str,
    ) -> anyhow::Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.args(["build", "--quiet", "--profile", profile]);
        cargo.args(["--package", package, "--bin", program]);
        // With `--target`, although it is the host's own: otherwise build scripts would be
        // static as well and compiled again.
        process::run(cargo.args(["--target", TARGET]))?;
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(self.target.join(TARGET).join(folder).join(program))
    }

    /// The folder of built programs.
    pub(crate) fn programs(&self) -> PathBuf {
        self.target.join("debug")
    }
}

/// A message of cargo. Most have no executable.
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
    fn packages_are_known_with_their_features() {
        let workspace = Workspace::find().unwrap();
        let package = |name| workspace.packages.iter().find(|one| one.name == name);
        let library = package("rdmacm").unwrap();
        assert!(library.is_published());
        let features: Vec<_> = library.features().collect();
        assert!(features.contains(&&"tokio".to_owned()));
        assert!(!features.contains(&&"default".to_owned()));
        assert!(!package("xtask").unwrap().is_published());
    }

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
