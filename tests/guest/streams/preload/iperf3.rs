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

/// How a client measures.
struct Way {
    arguments: &'static [&'static str],
    /// What it sends at least.
    sent: u64,
    /// The sums of its report: what was sent in a direction, and received.
    sums: &'static [[&'static str; 2]],
}

const TO_THE_SERVER: [&str; 2] = ["sum_sent", "sum_received"];
const BACK: [&str; 2] = ["sum_sent_bidir_reverse", "sum_received_bidir_reverse"];

/// The client sends, the server does, and both do for two seconds, each by several streams.
const WAYS: [Way; 3] = [
    Way {
        arguments: &["-n", "4000000"],
        sent: SENT,
        sums: &[TO_THE_SERVER],
    },
    Way {
        arguments: &["-n", "4000000", "--reverse"],
        sent: SENT,
        sums: &[TO_THE_SERVER],
    },
    Way {
        arguments: &["-t", "2", "--bidir", "--parallel", "4"],
        sent: 1,
        sums: &[TO_THE_SERVER, BACK],
    },
];

/// Runs a client, and checks how much was sent and received.
fn measure(mut program: Command, server: SocketAddr, way: &Way) -> io::Result<()> {
    let (ip, port) = (server.ip().to_string(), server.port().to_string());
    program.args(["-c", &ip, "-4", "-p", &port, "--json"]);
    let client = Tool::spawn_on(program.args(way.arguments), Stdio::null(), Stdio::piped());
    let report = client.finish().document();
    let bytes = |sum: &str| report["end"][sum]["bytes"].as_u64();
    for [sent, received] in way.sums {
        // It also reports an error, besides its results, if only `TCP_INFO` fails, which older
        // releases of rsockets do not know.
        let (Some(sent), Some(received)) = (bytes(sent), bytes(received)) else {
            return Err(io::Error::other(report["error"].to_string()));
        };
        assert!(sent >= way.sent, "{sent} bytes sent");
        assert!((1..=sent).contains(&received), "{received} bytes received");
    }
    Ok(())
}

#[case(needs(Preloaded, NewestPreloaded))]
fn it_is_a_server(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        for way in &WAYS {
            let start = |port| server(rdma_core.preloaded(PROGRAM), (site.v4, port).into());
            let measure = |entrance| measure(Command::new(PROGRAM), entrance, way);
            let (server, _proxy) = serve(site, start, measure);
            server.finish().assert_success();
        }
    }
}

#[case(needs(Preloaded))]
fn it_is_a_client(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(ANY) {
        for way in &WAYS {
            let exit = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let server = server(Command::new(PROGRAM), exit);
            wait_until_tcp_listens(exit.port());
            let (_proxy, port) = exit_to(site, exit);
            let program = rdma_core.preloaded(PROGRAM);
            measure(program, (site.v4, port).into(), way).unwrap();
            server.finish().assert_success();
        }
    }
}
