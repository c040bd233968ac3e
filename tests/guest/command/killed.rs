//! `rdmacm perf` with one side killed or interrupted: the other reports neither an orderly end nor an
//! error of its own.

use rdmacm_tests::{Site, free_port};

use super::perf::{client, server};
use super::{PATIENT, check_failure};
use crate::c_tools::tool::{Ended, Tool};
use crate::link::Link;
use rdmacm_tests_macros::case;

/// The tests, which differ in what each side does.
const TESTS: [&str; 4] = ["send-bw", "write-bw", "read-bw", "send-lat"];

/// Those of byte streams.
const STREAM_TESTS: [&str; 2] = ["stream-bw", "stream-lat"];

/// A client that measures for longer than the test waits.
fn tireless(site: &Site, port: &str, test: &str, more: &[&str]) -> Tool {
    let arguments = ["--test", test, "--duration", "3600000"];
    client(site, port, &[&arguments, more].concat())
}

/// Waits until the server measures, with the test's part of its output.
fn wait_for_measuring(server: &mut Tool, site: &Site) {
    server.wait_for(&format!("rdmacm: {}:", site.v4));
}

/// Requests that fail because the other side is gone look like invalid requests; the
/// output must not call them that.
fn check_departure(ended: &Ended, words: &str) {
    check_failure(ended, words);
    let blamed = ended.printed().iter().find(|line| line.contains("_ERR"));
    assert_eq!(blamed, None);
}

#[case]
fn a_client_reports_its_killed_server(site: &Site) {
    for test in TESTS {
        let (mut server, port) = server(site, &[]);
        let client = tireless(site, &port, test, &[]);
        wait_for_measuring(&mut server, site);
        server.stop();
        check_departure(&client.finish(), " messages");
    }
}

#[case]
fn a_server_counts_a_killed_client_as_failed(site: &Site) {
    for test in TESTS {
        let (mut server, port) = server(site, &[]);
        let client = tireless(site, &port, test, &[]);
        wait_for_measuring(&mut server, site);
        client.stop();
        check_departure(&server.finish(), " before it had finished");
    }
}

/// The end of a stream is the end of a complete measurement.
#[case]
fn a_server_counts_a_killed_or_interrupted_stream_client_as_failed(site: &Site) {
    for test in STREAM_TESTS {
        for is_killed in [true, false] {
            let (mut server, port) = server(site, &[]);
            let client = tireless(site, &port, test, &[]);
            wait_for_measuring(&mut server, site);
            if is_killed {
                client.stop();
            } else {
                client.interrupt();
                check_failure(&client.finish(), "interrupted after ");
            }
            check_failure(&server.finish(), " before it had finished");
        }
    }
}

#[case]
fn a_persistent_server_counts_a_killed_client_as_failed(site: &Site) {
    let (mut server, port) = server(site, &["--persistent", "--json"]);
    let client = tireless(site, &port, "send-bw", &[]);
    wait_for_measuring(&mut server, site);
    client.stop();
    let arguments = ["--test", "read-lat", "--count", "3"];
    self::client(site, &port, &arguments)
        .finish()
        .assert_success();
    server.interrupt();
    let ended = server.finish();
    assert_eq!(ended.status.code(), Some(1));
    let document = ended.document();
    assert_eq!(document["peers"], 2);
    assert_eq!(document["failed"], 1);
    let error = document["error"].as_str().unwrap();
    assert!(error.contains(" before it had finished"), "{error}");
}

#[case(alone)]
fn a_server_without_its_device_counts_its_clients_as_failed(site: &Site) {
    check_removal_during(site, "send-bw");
}

/// Both sides poll memory and never sleep.
#[case(alone)]
fn sides_that_only_poll_notice_that_their_device_is_gone(site: &Site) {
    check_removal_during(site, "write-lat");
}

/// Removes the device during the test: the server ends, and its client with it.
fn check_removal_during(site: &Site, test: &str) {
    let link = Link::new(site);
    let (address, port) = (
        link.address.ip().unwrap().to_string(),
        free_port().to_string(),
    );
    let arguments = ["perf", "--listen", &address, "--port", &port];
    let mut server = Tool::rdmacm(&[&arguments[..], &["--persistent", "--json"]].concat());
    server.wait_for("rdmacm: listening on ");
    let client = ["perf", &address, "--port", &port];
    let arguments = ["--test", test, "--duration", "3600000"];
    let client = Tool::rdmacm(&[&client[..], &arguments, &PATIENT].concat());
    server.wait_for(&format!("rdmacm: {address}:"));
    link.remove_device();
    let ended = server.finish();
    assert_eq!(ended.status.code(), Some(1));
    let document = ended.document();
    assert_eq!(document["peers"], 1);
    assert_eq!(document["failed"], 1);
    check_failure(&client.finish(), " messages");
}
