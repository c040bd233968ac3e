//! The `rdmacm` command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rdmacm_tests::{Site, free_port};
use serde_json::Value;

use crate::c_tools::tool::{Ended, Tool};

pub(crate) mod cat;
pub(crate) mod clients;
pub(crate) mod devices;
pub(crate) mod killed;
pub(crate) mod perf;
pub(crate) mod ping;
pub(crate) mod resolve;

/// The timeout of a client is the test's.
const PATIENT: [&str; 2] = ["--timeout", "60000"];

/// A program of this workspace, built with this test's profile.
pub(crate) fn built(program: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    // target/<profile>/deps/<this test>
    let profile = this.parent().and_then(Path::parent).unwrap();
    profile.join(program)
}

/// The output and the exit code of the command.
struct Finished {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn rdmacm(arguments: &[&str]) -> Finished {
    let output = Command::new(built("rdmacm")).args(arguments).output();
    output.unwrap().into()
}

/// A listening server, and its port.
fn server(task: &str, site: &Site, arguments: &[&str]) -> (Tool, String) {
    let (address, port) = (site.v4.to_string(), free_port().to_string());
    let common = [task, "--listen", &address, "--port", &port];
    let mut server = Tool::rdmacm(&[&common, arguments].concat());
    server.wait_for("rdmacm: listening on ");
    (server, port)
}

/// Checks that it failed with this text in its output.
fn check_failure(ended: &Ended, words: &str) {
    assert_eq!(ended.status.code(), Some(1));
    ended.assert_contains(words);
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// The table's rows below the header, as cells.
    fn rows(&self) -> Vec<Vec<&str>> {
        let lines = self.stdout.lines().skip(1);
        lines
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect()
    }

    /// The JSON document that is its output.
    fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
