//! What the command says on a machine without the connection manager's device.
//! On one that has it these tests are skipped, by name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

const NODE: &str = "/dev/infiniband/rdma_cm";

fn main() -> ExitCode {
    let trials = vec![
        trial(
            "the_missing_device_is_reported",
            the_missing_device_is_reported,
        ),
        trial("advice_is_printed", advice_is_printed),
        trial("the_error_is_one_document", the_error_is_one_document),
        trial("passive_needs_it_too", passive_needs_it_too),
        trial(
            "opening_it_has_no_peer_and_takes_no_time",
            opening_it_has_no_peer_and_takes_no_time,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::ignorable_test(name, move || -> Result<Completion, Failed> {
        if Path::new(NODE).exists() {
            return Ok(Completion::ignored_with(
                "this machine has an RDMA connection manager",
            ));
        }
        test();
        Ok(Completion::Completed)
    })
}

fn rdmacm(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdmacm"));
    command.args(arguments).output().unwrap()
}

/// What a failing command says on standard error, and only there.
fn complaint(arguments: &[&str]) -> String {
    let output = rdmacm(arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).unwrap()
}

fn the_missing_device_is_reported() {
    let complaint = complaint(&["resolve", "127.0.0.1", "7471"]);
    let start = format!("rdmacm: open {NODE}: ENOENT");
    assert!(complaint.starts_with(&start), "{complaint}");
}

fn advice_is_printed() {
    let complaint = complaint(&["resolve", "127.0.0.1", "7471"]);
    // The module that makes the node, or the node that is not passed on.
    let action = if Path::new("/sys/class/misc/rdma_cm").exists() {
        "start it, or pass the node into the container"
    } else {
        "modprobe rdma_ucm"
    };
    assert!(complaint.contains(action), "{complaint}");
}

fn the_error_is_one_document() {
    let output = rdmacm(&["resolve", "127.0.0.1", "7471", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["node"], "127.0.0.1");
    assert_eq!(document["reachable"], false);
    let error = document["error"].as_str().unwrap();
    assert!(error.contains(NODE), "{error}");
}

fn passive_needs_it_too() {
    let complaint = complaint(&["resolve", "0.0.0.0", "7471", "--passive"]);
    assert!(complaint.contains(NODE), "{complaint}");
}

fn opening_it_has_no_peer_and_takes_no_time() {
    for arguments in [
        ["ping", "10.1.0.7"],
        ["perf", "10.1.0.7"],
        ["ping", "--listen"],
    ] {
        let complaint = complaint(&arguments);
        let start = format!("rdmacm: open the connection manager: {NODE}: ENOENT");
        assert!(complaint.starts_with(&start), "{complaint}");
        assert!(!complaint.contains("after"), "{complaint}");
    }
}
