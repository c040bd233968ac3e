//! Detecting that a tool's server listens.

use std::process::Command;
use std::time::Instant;

use rdmacm_tests::PATIENCE;

use super::tool::Tool;

/// Waits until the tool listens at this address and port and is idle.
///
/// The kernel lists the id as a listener before siw accepts connections, and a
/// connection in between breaks the server (`siw_create_listen`). So this also waits
/// until the tool sleeps, which it does after the command has returned.
pub(crate) fn wait_until_it_listens(tool: &Tool, address: &str) {
    wait_for_listener(address, || tool.is_asleep());
}

/// The same of a tool that listens with rsockets. It reads events only when it is told that
/// there are some, so it is not idle while it sleeps in a command.
pub(crate) fn wait_until_its_socket_listens(tool: &Tool, address: &str) {
    wait_for_listener(address, || tool.is_asleep() && !tool.is_in_command());
}

fn wait_for_listener(address: &str, is_idle: impl Fn() -> bool) {
    wait_for_ids(address, |ids| ids.iter().any(|id| is_listening(id)));
    let until = Instant::now() + PATIENCE;
    while !is_idle() {
        assert!(Instant::now() < until, "{address}");
        std::thread::yield_now();
    }
}

/// Waits until a program listens at this port of TCP, on an IPv4 address.
pub(crate) fn wait_until_tcp_listens(port: u16) {
    // The local address and the state, both in hexadecimal (proc_net_tcp).
    let (port, listening) = (format!(":{port:04X}"), "0A");
    let until = Instant::now() + PATIENCE;
    loop {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let is_it = |socket: &str| {
            let mut fields = socket.split_whitespace().skip(1);
            let ends_with = |local: &str| local.ends_with(&port);
            fields.next().is_some_and(ends_with) && fields.nth(1) == Some(listening)
        };
        if sockets.lines().any(is_it) {
            break;
        }
        assert!(Instant::now() < until, "{port}");
        std::thread::yield_now();
    }
}

/// Waits until only a listener is left at this address and port.
pub(crate) fn wait_until_it_only_listens(address: &str) {
    wait_for_ids(
        address,
        |ids| matches!(ids, [listener] if is_listening(listener)),
    );
}

fn is_listening(id: &str) -> bool {
    id.contains(" state LISTEN ")
}

/// Waits until the kernel's ids at this address and port satisfy a condition.
fn wait_for_ids(address: &str, shall_be: impl Fn(&[&str]) -> bool) {
    let its = format!(" src-addr {address} ");
    let until = Instant::now() + PATIENCE;
    loop {
        let mut listing = Command::new("rdma");
        let listing = listing.args(["resource", "show", "cm_id"]).output();
        let listing = String::from_utf8(listing.unwrap().stdout).unwrap();
        let ids: Vec<_> = listing.lines().filter(|id| id.contains(&its)).collect();
        if shall_be(&ids) {
            break;
        }
        assert!(Instant::now() < until, "{ids:?}");
    }
}
