//! What the command line takes and refuses, on any machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs::File;
use std::process::{Command, Output};

fn rdmacm(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdmacm"));
    command.args(arguments).output().unwrap()
}

/// Exits with 2, says `words` on standard error and nothing else.
#[track_caller]
fn is_bad_usage(arguments: &[&str], words: &str) {
    let output = rdmacm(arguments);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains(words), "{complaint}");
    assert_eq!(output.stdout, b"");
}

#[track_caller]
fn is_help(arguments: &[&str], words: &[&str]) {
    let output = rdmacm(arguments);
    let help = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for word in words {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn help_lists_the_commands() {
    is_help(&["--help"], &["resolve", "devices", "ping", "perf"]);
}

#[test]
fn help_lists_the_options_and_exit_codes() {
    let options = [
        "--passive",
        "--numeric",
        "--no-route",
        "--family",
        "--qp",
        "--ps",
        "--source",
        "--timeout",
        "--json",
        "Exits with 0",
    ];
    is_help(&["resolve", "--help"], &options);
    is_help(&["devices", "--help"], &["--json"]);
}

#[test]
fn no_arguments_are_bad_usage() {
    is_bad_usage(&[], "Usage");
    is_bad_usage(&["resolve"], "<NODE>");
}

#[test]
fn an_unknown_command_or_option_is_bad_usage() {
    is_bad_usage(&["dissolve"], "dissolve");
    is_bad_usage(&["resolve", "host", "--nonsense"], "--nonsense");
}

#[test]
fn an_unknown_family_is_bad_usage() {
    is_bad_usage(&["resolve", "host", "--family", "5"], "--family");
}

#[test]
fn a_type_of_queue_pair_must_exist() {
    is_bad_usage(&["resolve", "host", "--qp", "qp"], "--qp");
}

#[test]
fn a_type_of_queue_pair_must_fit_the_port_space() {
    for (qp, ps) in [("rc", "udp"), ("ud", "tcp"), ("uc", "ipoib")] {
        let arguments = ["resolve", "host", "--qp", qp, "--ps", ps];
        is_bad_usage(&arguments, "allows --qp");
    }
}

#[test]
fn a_timeout_is_a_number_of_milliseconds_above_0() {
    for timeout in ["0", "-1", "soon", "1.5", "99999999999999999999"] {
        let timeout = format!("--timeout={timeout}");
        is_bad_usage(&["resolve", "host", &timeout], "--timeout");
    }
}

#[test]
fn a_source_is_a_numeric_address() {
    for source in [
        "host",
        "10.1",
        "010.1.0.1",
        "10.1.0.7:7",
        "fe80::1%nosuchif",
    ] {
        is_bad_usage(&["resolve", "host", "--source", source], "--source");
    }
}

#[test]
fn a_passive_resolution_has_no_other_source() {
    let arguments = ["resolve", "host", "--passive", "--source", "10.1.0.7"];
    is_bad_usage(&arguments, "cannot be used with");
}

#[test]
fn only_a_destination_has_paths_of_ibacm() {
    is_bad_usage(&["resolve", "--local", "--acm"], "cannot be used with");
    for option in ["--acm", "--numeric", "--ps=tcp"] {
        is_bad_usage(&["resolve", "--sa", "7", option], "cannot be used with");
    }
    let arguments = ["resolve", "host", "--passive", "--acm=/run"];
    is_bad_usage(&arguments, "cannot be used with");
}

#[test]
fn a_name_nobody_knows_is_a_failure_in_words() {
    let output = rdmacm(&["resolve", "nobody", "7471", "--numeric"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint, "rdmacm: the node or service is not known\n");
    assert_eq!(output.stdout, b"");
}

/// What was not written is no success: the command exits with 1 and says why.
#[track_caller]
fn cannot_print(command: &mut Command, why: &str) {
    let output = command.output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    let beginning = format!("rdmacm: standard output: {why}");
    assert!(complaint.starts_with(&beginning), "{complaint}");
}

const EACH_WITH_OUTPUT: [&[&str]; 3] = [
    &["devices", "--json"],
    &["cat", "10.1.0.7:7471"],
    &["cat", "--listen"],
];

#[test]
fn an_output_that_is_only_read_is_a_failure() {
    let program = env!("CARGO_BIN_EXE_rdmacm");
    for arguments in EACH_WITH_OUTPUT {
        let mut command = Command::new(program);
        let input = File::open(program).unwrap();
        cannot_print(command.args(arguments).stdout(input), "Bad file descriptor");
    }
}

/// The runtime of other C libraries opens `/dev/null` before the program runs.
#[cfg(target_env = "gnu")]
#[test]
fn an_output_that_is_closed_is_a_failure() {
    for arguments in EACH_WITH_OUTPUT {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_rdmacm")]);
        cannot_print(shell.args(arguments), "Bad file descriptor");
    }
}

#[test]
fn an_output_without_space_is_a_failure() {
    for arguments in [
        &["devices", "--json"][..],
        &["help", "ping"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rdmacm"));
        cannot_print(command.args(arguments).stdout(full), "No space");
    }
}

#[test]
fn a_service_nobody_knows_is_a_failure_in_words() {
    let output = rdmacm(&["resolve", "10.1.0.7", "no-such-service"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("service is not known"), "{complaint}");
}

#[test]
fn a_failure_is_one_document_and_nothing_else() {
    let output = rdmacm(&["resolve", "nobody", "7471", "--numeric", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["node"], "nobody");
    assert_eq!(document["service"], "7471");
    assert_eq!(document["reachable"], false);
    assert_eq!(document["error"], "the node or service is not known");
    assert_eq!(document["candidates"], serde_json::json!([]));
}

/// Of the commands that need no device, only `devices` has an exit code of 0 and a notice, where
/// there is no device.
#[test]
fn an_error_that_cannot_be_printed_changes_nothing_else() {
    for arguments in [&["devices"][..], &["resolve", "nobody", "--numeric"]] {
        let printed = rdmacm(arguments);
        let full = File::options().write(true).open("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rdmacm"));
        command.args(arguments).stderr(full.unwrap());
        let unprinted = command.output().unwrap();
        assert_eq!(unprinted.status.code(), printed.status.code());
        assert_eq!(unprinted.stdout, printed.stdout);
    }
}

#[test]
fn devices_are_one_document() {
    let output = rdmacm(&["devices", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fails = !document["error"].is_null();
    assert_eq!(output.status.code(), Some(i32::from(fails)));
    assert!(document["devices"].is_array());
}

#[test]
fn ping_lists_its_options_and_exit_codes() {
    let options = [
        "--listen",
        "--port",
        "--count",
        "--size",
        "--validate",
        "--interval",
        "--timeout",
        "--persistent",
        "--max-clients",
        "--json",
        "Exits with 0",
    ];
    is_help(&["ping", "--help"], &options);
}

#[test]
fn ping_takes_a_node_or_listen() {
    is_bad_usage(&["ping"], "NODE");
    is_bad_usage(&["ping", "host", "--listen"], "cannot be used with");
    is_bad_usage(&["ping", "--listen", "host"], "--listen");
}

#[test]
fn a_server_takes_no_client_options() {
    for option in ["--size=64", "--validate", "--interval=1", "--timeout=1"] {
        let arguments = ["ping", "--listen", "::", option];
        is_bad_usage(&arguments, "cannot be used with");
    }
    is_bad_usage(&["ping", "host", "--persistent"], "cannot be used with");
}

#[test]
fn a_ping_has_23_bytes_to_16_mib() {
    for size in ["22", "16777217", "-1", "many"] {
        is_bad_usage(&["ping", "host", &format!("--size={size}")], "--size");
    }
}

#[test]
fn a_client_names_its_servers_port() {
    for task in ["ping", "perf"] {
        is_bad_usage(&[task, "host", "--port", "0"], "--port 0 is for --listen");
    }
}

#[test]
fn a_depth_is_of_bandwidth() {
    for test in ["send-lat", "write-lat", "read-lat"] {
        let arguments = ["perf", "host", "--test", test, "--depth", "1"];
        is_bad_usage(&arguments, "--depth is for bandwidth");
    }
}

#[test]
fn only_a_persistent_server_has_a_limit_of_clients() {
    for task in ["ping", "perf"] {
        is_bad_usage(&[task, "--listen", "--max-clients", "4"], "--persistent");
        is_bad_usage(&[task, "host", "--max-clients", "4"], "cannot be used with");
        let arguments = ["--listen", "--persistent", "--max-clients", "0"];
        is_bad_usage(&[&[task], &arguments[..]].concat(), "--max-clients");
    }
}

#[test]
fn there_is_at_least_one_ping() {
    is_bad_usage(&["ping", "host", "--count", "0"], "--count");
}

#[test]
fn a_ping_to_nobody_is_one_document_and_nothing_else() {
    let output = rdmacm(&["ping", "10.1.0.7", "--timeout", "1", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["role"], "client");
    assert_eq!(document["node"], "10.1.0.7");
    assert_eq!(document["pings"], 0);
    assert!(document["error"].is_string());
    assert_eq!(document["latency_ns"], serde_json::Value::Null);
}

#[test]
fn perf_lists_its_options_tests_and_exit_codes() {
    let options = [
        "--listen",
        "--port",
        "--test",
        "--size",
        "--depth",
        "--duration",
        "--count",
        "--poll",
        "--timeout",
        "--persistent",
        "--max-clients",
        "--json",
        "send-bw",
        "send-lat",
        "write-bw",
        "write-lat",
        "read-bw",
        "read-lat",
        "Exits with 0",
    ];
    is_help(&["perf", "--help"], &options);
}

#[test]
fn the_client_chooses_what_to_measure() {
    for option in [
        "--test=send-bw",
        "--size=1",
        "--depth=1",
        "--poll",
        "--count=1",
    ] {
        let arguments = ["perf", "--listen", "::", option];
        is_bad_usage(&arguments, "cannot be used with");
    }
    let arguments = ["perf", "host", "--count=1", "--duration=1"];
    is_bad_usage(&arguments, "cannot be used with");
}

#[test]
fn no_more_is_measured_than_is_served() {
    is_bad_usage(&["perf", "host", "--size", "16777217"], "--size");
    is_bad_usage(&["perf", "host", "--depth", "1025"], "--depth");
    let arguments = ["perf", "host", "--size", "65536", "--depth", "1024"];
    is_bad_usage(&arguments, "--size times --depth");
    is_bad_usage(&["perf", "host", "--test", "nothing"], "--test");
}
