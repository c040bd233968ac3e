//! The examples, run as a reader would.

use std::process::{Command, Output};

use rdmacm_tests::{PLAIN, Site};

use crate::command::built;
use rdmacm_tests_macros::case;

fn connect_candidates(arguments: &[&str]) -> Output {
    let example = built("examples/connect_candidates");
    Command::new(example).args(arguments).output().unwrap()
}

#[case]
fn candidates_to_connect_to(site: &Site) {
    let output = connect_candidates(&["pair", "7471"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let v4 = site.v4;
    let line = format!("{v4}:7471 from {v4} via {} port 1", site.device);
    assert!(text.lines().any(|one| one == line), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[case]
fn no_candidate_is_a_failure(_: &Site) {
    let output = connect_candidates(&[&PLAIN.to_string(), "7471"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("reaches no address"), "{complaint}");
}

#[case]
fn missing_arguments_are_bad_usage(_: &Site) {
    let output = connect_candidates(&["pair"]);
    assert_eq!(output.status.code(), Some(2));
}
