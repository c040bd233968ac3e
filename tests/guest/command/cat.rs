//! `rdmacm cat`, with itself as the peer.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::sys::memfd::{MFdFlags, memfd_create};
use rdmacm_tests::{Site, Soft, free_port};

use super::{PATIENT, built, check_failure};
use crate::c_tools::tool::Tool;
use rdmacm_tests_macros::case;

/// A file in memory with these bytes, to be read from its beginning.
pub(crate) fn memory_file(bytes: &[u8]) -> File {
    let file = memfd_create("rdmacm-cat", MFdFlags::MFD_CLOEXEC).unwrap();
    let mut file = File::from(file);
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

/// All bytes of the file.
pub(crate) fn content(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// A listening server, and its port.
pub(crate) fn server(
    site: &Site,
    input: impl Into<Stdio>,
    output: impl Into<Stdio>,
) -> (Tool, String) {
    let (address, port) = (site.v4.to_string(), free_port().to_string());
    let arguments = ["cat", "--listen", &address, "--port", &port];
    let mut server = Tool::rdmacm_on(&arguments, input, output);
    server.wait_for("rdmacm: listening on ");
    (server, port)
}

pub(crate) fn client(
    site: &Site,
    port: &str,
    input: impl Into<Stdio>,
    output: impl Into<Stdio>,
) -> Tool {
    let address = site.v4.to_string();
    let common = ["cat", &address, "--port", port];
    Tool::rdmacm_on(&[&common, &PATIENT[..]].concat(), input, output)
}

/// Bytes whose period is no power of two.
fn some_bytes(count: usize) -> Vec<u8> {
    (0..251).cycle().take(count).collect()
}

#[case]
fn both_directions_are_copied(site: &Site) {
    let sizes = [
        (3_000_001, 1_000_003),
        (0, 500_000),
        (500_000, 0),
        (1, 1),
        (0, 0),
    ];
    for (to_server, to_client) in sizes {
        let (to_server, to_client) = (some_bytes(to_server), some_bytes(to_client));
        let at_server = memory_file(b"");
        let output = at_server.try_clone().unwrap();
        let (server, port) = server(site, memory_file(&to_client), output);
        let at_client = memory_file(b"");
        let output = at_client.try_clone().unwrap();
        let client = client(site, &port, memory_file(&to_server), output);
        client.finish().assert_success();
        server.finish().assert_success();
        assert!(
            content(&at_server) == to_server,
            "{} bytes",
            to_server.len()
        );
        assert!(
            content(&at_client) == to_client,
            "{} bytes",
            to_client.len()
        );
    }
}

/// Nobody types at the terminal.
#[case]
fn a_side_with_a_terminal_ends_with_its_peer(site: &Site) {
    let bytes = some_bytes(100_000);
    let terminal = openpty(None, None).unwrap();
    let at_server = memory_file(b"");
    let (server, port) = server(site, terminal.slave, at_server.try_clone().unwrap());
    let client = client(site, &port, memory_file(&bytes), Stdio::null());
    client.finish().assert_success();
    server.finish().assert_success();
    assert!(content(&at_server) == bytes);
}

#[case]
fn progress_is_shown_on_a_terminal(site: &Site) {
    let bytes = some_bytes(1_000_000);
    let at_server = memory_file(b"");
    let (server, port) = server(site, Stdio::null(), at_server.try_clone().unwrap());
    let terminal = openpty(None, None).unwrap();
    let sent = Command::new(built("rdmacm"))
        .args(["cat", &site.v4.to_string(), "--port", &port])
        .args(PATIENT)
        .stdin(memory_file(&bytes))
        .stdout(Stdio::null())
        .stderr(terminal.slave)
        .status();
    assert!(sent.unwrap().success());
    server.finish().assert_success();
    assert!(content(&at_server) == bytes);
    let mut shown = Vec::new();
    // Another test's child may have the other end as well.
    fcntl(&terminal.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let _ = File::from(terminal.master).read_to_end(&mut shown);
    let shown = String::from_utf8(shown).unwrap();
    let lines: Vec<_> = shown.split('\r').collect();
    assert!(lines.len() > 2, "{shown:?}");
    assert!(
        lines[1].ends_with(" bytes sent, 0 bytes received\x1b[K"),
        "{shown:?}"
    );
    // Nothing of it is left.
    assert_eq!(lines.last(), Some(&"\x1b[K"), "{shown:?}");
}

#[case]
fn an_interrupted_server_says_how_far_it_came(site: &Site) {
    let (server, _) = server(site, Stdio::null(), Stdio::null());
    server.interrupt();
    let words = "rdmacm: interrupted after 0 bytes sent, 0 bytes received";
    check_failure(&server.finish(), words);
}

#[case]
fn a_client_without_a_server_says_why(site: &Site) {
    let port = free_port().to_string();
    let client = client(site, &port, Stdio::null(), Stdio::null());
    let reason = match site.soft {
        Soft::Rxe => "no listener",
        Soft::Siw => "no server listens on the port",
    };
    check_failure(&client.finish(), reason);
}

/// What a peer had not sent is missing, and that is no success.
#[case]
fn a_peer_that_is_killed_or_interrupted_is_a_failure(site: &Site) {
    for is_killed in [true, false] {
        let (at_server, at_client) = (openpty(None, None).unwrap(), openpty(None, None).unwrap());
        let (mut server, port) = server(site, at_server.slave, Stdio::null());
        let client = client(site, &port, at_client.slave, Stdio::null());
        server.wait_for(&format!("rdmacm: {}:", site.v4));
        if is_killed {
            drop(server);
        } else {
            server.interrupt();
            check_failure(&server.finish(), "rdmacm: interrupted after");
        }
        check_failure(&client.finish(), "after 0 bytes sent, 0 bytes received");
    }
}

/// A server whose user types nothing would wait for the end of what the client sends.
#[case]
fn an_input_that_cannot_be_read_fails_both_sides(site: &Site) {
    let terminal = openpty(None, None).unwrap();
    let (server, port) = server(site, terminal.slave, Stdio::null());
    let directory = File::open("/").unwrap();
    let client = client(site, &port, directory, Stdio::null());
    check_failure(&client.finish(), "Is a directory");
    check_failure(&server.finish(), "after 0 bytes sent, 0 bytes received");
}
