//! Both implementations of netcat: standard input and output by a socket.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

use super::{ANY, NEWEST, exit_to, serve, tcp_server};
use crate::c_tools::tool::Tool;
use crate::command::cat::{content, memory_file};
use crate::rdma_core::RdmaCore;
use crate::streams::bytes;
use crate::tcp;

/// What each side sends: several times the buffers of a stream.
const SENT_BY_NETCAT: usize = 700_001;
const SENT_BY_PEER: usize = 500_009;

/// Starts netcat with this file as its output.
fn start(rdma_core: RdmaCore, arguments: &[&str], output: &File) -> Tool {
    let mut netcat = rdma_core.preloaded(arguments[0]);
    let input = memory_file(&bytes(SENT_BY_NETCAT)).into();
    let output = output.try_clone().unwrap().into();
    Tool::spawn_on(netcat.args(&arguments[1..]), input, output)
}

/// Checks what it has received, once it has ended.
fn check(netcat: Tool, output: &File) {
    netcat.finish().assert_success();
    assert!(content(output) == bytes(SENT_BY_PEER));
}

/// What netcat's peer does. It ends its direction last, because a netcat that listens ends with
/// it.
fn exchange(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream.try_clone()?;
    let writing = std::thread::spawn(move || writer.write_all(&bytes(SENT_BY_PEER)));
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    let written = writing.join().unwrap();
    if received.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    assert!(received == bytes(SENT_BY_NETCAT), "{}", received.len());
    written?;
    stream.shutdown(Shutdown::Write)
}

/// A program and its arguments, for an address and a port.
type Arguments = for<'a> fn(&'a str, &'a str) -> Vec<&'a str>;

fn as_server(site: &Site, rdma_core: RdmaCore, arguments: Arguments) {
    let (address, output) = (site.v4.to_string(), memory_file(b""));
    let start = |port: u16| start(rdma_core, &arguments(&address, &port.to_string()), &output);
    let (server, _proxy) = serve(site, start, |entrance| {
        exchange(TcpStream::connect(entrance)?)
    });
    check(server, &output);
}

fn as_client(site: &Site, rdma_core: RdmaCore, arguments: Arguments) {
    let (server, exit) = tcp_server();
    let (_proxy, port) = exit_to(site, exit);
    let (address, output) = (site.v4.to_string(), memory_file(b""));
    let netcat = start(rdma_core, &arguments(&address, &port.to_string()), &output);
    exchange(tcp::accept(&server)).unwrap();
    check(netcat, &output);
}

#[case(needs(Preloaded))]
fn traditional_netcat_is_a_server(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(ANY) {
        as_server(site, rdma_core, |address, port| {
            let listen = ["nc.traditional", "-n", "-l", "-s", address, "-p", port];
            [&listen[..], &["-q", "60"]].concat()
        });
    }
}

#[case(needs(Preloaded))]
fn traditional_netcat_is_a_client(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(ANY) {
        as_client(site, rdma_core, |address, port| {
            vec!["nc.traditional", "-n", "-q", "60", address, port]
        });
    }
}

#[case(needs(Preloaded, NewestPreloaded))]
fn openbsd_netcat_is_a_server(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        as_server(site, rdma_core, |address, port| {
            vec!["nc.openbsd", "-4nN", "-l", address, port]
        });
    }
}

#[case(needs(Preloaded, NewestPreloaded))]
fn openbsd_netcat_is_a_client(site: &Site) {
    for rdma_core in RdmaCore::preloaded_since(NEWEST) {
        as_client(site, rdma_core, |address, port| {
            vec!["nc.openbsd", "-4nN", address, port]
        });
    }
}
