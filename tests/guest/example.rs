//! The examples, run as their documentation says.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use rdmacm_tests::{PLAIN, Site, free_port};

use crate::command::built;
use rdmacm_tests_macros::case;

pub(crate) mod on_streams;
pub(crate) mod tcp_proxy;

/// Runs an example and returns its output.
fn printed(name: &str, arguments: &[&str]) -> String {
    let example = built(&format!("examples/{name}"));
    let output = Command::new(example).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn address(site: &Site) -> String {
    site.v4(free_port()).to_string()
}

#[case]
fn an_echo_server_serves_until_its_input_ends(site: &Site) {
    let address = address(site);
    let mut server = Command::new(built("examples/echo"))
        .args(["serve", &address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let listening = lines.next().unwrap().unwrap();
    assert_eq!(listening, format!("listening on {address}"));
    for message in ["hello", "again"] {
        let reply = printed("echo", &["send", &address, message]);
        assert_eq!(reply.trim_end(), message);
        assert_eq!(lines.next().unwrap().unwrap(), "Ok(())");
    }
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[case]
fn an_asynchronous_echo_server_shuts_down(site: &Site) {
    let text = printed("echo_async", &[&address(site)]);
    assert_eq!(text, "one\ntwo\nthree\nOk(Ok(()))\n1 clients\n");
}

#[case]
fn a_table_is_read_without_the_server(site: &Site) {
    let text = printed("key_value", &[&address(site)]);
    assert_eq!(text, "3: 9\n17: 289\n63: 3969\n");
}

#[case]
fn a_file_is_transferred(site: &Site) {
    let folder = std::env::temp_dir();
    let path = |name: &str| folder.join(format!("{}-{name}", site.device));
    let (from, to) = (path("from"), path("to"));
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    fs::write(&from, &bytes).unwrap();
    let [from_text, to_text] = [&from, &to].map(|path| path.to_str().unwrap());
    let text = printed("file_transfer", &[&address(site), from_text, to_text]);
    assert_eq!(text, "300000 bytes\n");
    assert!(fs::read(&to).unwrap() == bytes, "other bytes");
    fs::remove_file(from).unwrap();
    fs::remove_file(to).unwrap();
}

#[case]
fn many_reads_are_under_way(site: &Site) {
    assert_eq!(
        printed("pipelined_reads", &[&address(site)]),
        "65536 bytes\n"
    );
}

#[case(alone)]
fn deadlines_are_kept(site: &Site) {
    let text = printed("deadlines", &[&address(site)]);
    assert_eq!(
        text,
        "accept timed out: true\nconnect timed out: true\ntried three times: true\nstopped: true\n"
    );
}

#[case]
fn a_container_is_ready(site: &Site) {
    assert_eq!(printed("static_container", &[&address(site)]), "ready\n");
}

#[case]
fn a_container_without_the_address_is_not_ready() {
    let example = built("examples/static_container");
    // A documentation address, which no machine has (RFC 5737).
    let output = Command::new(example)
        .arg("192.0.2.1:7471")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("not ready: listen on 192.0.2.1:7471: "),
        "{stderr}"
    );
}

#[case]
fn tests_on_simulated_hosts_pass() {
    for name in ["simulated", "simulated_async"] {
        assert_eq!(printed(name, &[]), "");
    }
}

#[case]
fn an_event_loop_of_poll_resolves_a_route(site: &Site) {
    let text = printed("poll_loop", &[&address(site)]);
    assert_eq!(text, format!("via {}\n", site.device));
}

#[case(alone, needs(Datagrams))]
fn datagrams_reach_a_peer(site: &Site) {
    assert_eq!(printed("datagrams", &[&address(site)]), "ping\n");
}

#[case(alone, needs(Datagrams))]
fn a_group_receives_datagrams(site: &Site) {
    assert_eq!(
        printed("multicast", &[&site.v4.to_string()]),
        "to all members\n"
    );
}

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
