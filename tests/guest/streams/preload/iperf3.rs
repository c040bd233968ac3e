//! iperf3, which measures: a connection for its commands, and one for bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use rdmacm_tests::{Site, free_port};
use rdmacm_tests_macros::case;

use super::{ANY, NEWEST, exit_to, serve};
use crate::c_tools::listening::wait_until_tcp_listens;
use crate::c_tools::tool::Tool;
use crate::rdma_core::RdmaCore;

const PROGRAM: &str = "iperf3";
/// What the sending side sends. When it has sent everything, the receiving side stops to count:
/// up to 10 MiB may still be in the buffers of TCP.
const SENT: u64 = 4_000_000;

fn server(mut program: Command, address: SocketAddr) -> Tool {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    program.args(["-s", "-4", "-1", "-B", &ip, "-p", &port]);
    Tool::spawn_on(&mut program, Stdio::null(), Stdio::piped())
}

/// Runs a client, and checks how much was sent and received.
fn measure(mut program: Command, server: SocketAddr, more: &[&str]) -> io::Result<()> {
    let (ip, port) = (server.ip().to_string(), server.port().to_string());
    let sent = SENT.to_string();
    program.args(["-c", &ip, "-4", "-p", &port, "-n", &sent, "--json"]);
    let client = Tool::spawn_on(program.args(more), Stdio::null(), Stdio::piped());
    let report = client.finish().document();
    let bytes = |sum: &str| report["end"][sum]["bytes"].as_u64();
    // It also reports an error, besides its results, if only `TCP_INFO` fails, which older releases
    // of rsockets do not know.
    let (Some(sent), Some(received)) = (bytes("sum_sent"), bytes("sum_received")) else {
        return Err(io::Error::other(report["error"].to_string()));
    };
    assert!(sent >= SENT, "{sent} bytes sent");
    assert!((1..=sent).contains(&received), "{received} bytes received");
    Ok(())
}

/// The client sends, and the server does.
const DIRECTIONS: [&[&str]; 2] = [&[], &["--reverse"]];

#[case(needs(Preloaded, NewestPreloaded))]
fn it_is_a_server(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        for direction in DIRECTIONS {
            let start = |port| server(rdma_core.preloaded(PROGRAM), (site.v4, port).into());
            let measure = |entrance| measure(Command::new(PROGRAM), entrance, direction);
            let (server, _proxy) = serve(site, start, measure);
            server.finish().assert_success();
        }
    }
}

#[case(needs(Preloaded))]
fn it_is_a_client(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(ANY) {
        for direction in DIRECTIONS {
            let exit = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let server = server(Command::new(PROGRAM), exit);
            wait_until_tcp_listens(exit.port());
            let (_proxy, port) = exit_to(site, exit);
            let program = rdma_core.preloaded(PROGRAM);
            measure(program, (site.v4, port).into(), direction).unwrap();
            server.finish().assert_success();
        }
    }
}
