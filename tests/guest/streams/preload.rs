//! Programs that speak TCP, with librdmacm's rsockets preloaded, and this library's streams as
//! their peers: the example `tcp_proxy` forwards them to and from TCP.
//!
//! A program whose sockets stay those of TCP, as the preloaded library allows without a word,
//! reaches nothing: only streams lead to the proxy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rdmacm_tests::{Site, Soft, free_port};

use crate::c_tools::installed;
use crate::c_tools::listening::wait_until_its_socket_listens;
use crate::c_tools::tool::Tool;
use crate::example::tcp_proxy;
use crate::packet_delay::hold_back_first_messages;
use crate::rdma_core::RdmaCore;

pub(crate) mod http;
pub(crate) mod iperf3;
pub(crate) mod netcat;

/// The release since which the library knows `accept4`, `fcntl64`, flags in the type of a socket,
/// and the descriptors of `select`.
const NEWEST: u32 = 63;
pub(crate) const WITHOUT_NEWEST: &str =
    "librspreload before rdma-core 63 lacks accept4 and flags in the type of a socket";

pub(crate) fn has_newest() -> bool {
    RdmaCore::preloaded_since(NEWEST).next().is_some()
}

/// Any release.
const ANY: u32 = 0;
pub(crate) const WITHOUT: &str =
    "librspreload, iperf3, curl, python3 or one of the programs netcat is not installed";

pub(crate) fn is_there() -> bool {
    let programs = ["curl", "iperf3", "nc.openbsd", "nc.traditional", "python3"];
    programs.into_iter().all(installed) && RdmaCore::preloaded_since(ANY).next().is_some()
}

/// How often a server may close connections instead of accepting them.
const CLOSED_AT_MOST: usize = 3;

/// Runs a preloaded server and its client of TCP, and returns the server and the proxy between
/// them.
///
/// On siw a server of librdmacm sometimes closes a connection instead of accepting it: a new one
/// is started.
fn serve(
    site: &Site,
    start: impl Fn(u16) -> Tool,
    client: impl Fn(SocketAddr) -> io::Result<()>,
) -> (Tool, Tool) {
    let mut closed = 0;
    loop {
        let address = SocketAddr::from((site.v4, free_port()));
        hold_back_first_messages(site, &address.port().to_string());
        let server = start(address.port());
        wait_until_its_socket_listens(&server, &address.to_string());
        let (proxy, entrance) = tcp_proxy::to_rdma(address);
        let error = match client(entrance) {
            Ok(()) => break (server, proxy),
            Err(error) => error,
        };
        let printed = proxy.stop();
        let is_closed = |line: &String| line.contains("EINVAL");
        let is_closed = printed.printed().iter().any(is_closed);
        closed += 1;
        assert!(
            site.soft == Soft::Siw && is_closed && closed <= CLOSED_AT_MOST,
            "{error}: {:?}",
            printed.printed()
        );
    }
}

/// A proxy that listens for a preloaded client and forwards it to this server, and its port.
fn exit_to(site: &Site, server: SocketAddr) -> (Tool, u16) {
    let address = SocketAddr::from((site.v4, free_port()));
    hold_back_first_messages(site, &address.port().to_string());
    (tcp_proxy::from_rdma(address, server), address.port())
}

/// A server of TCP, and its address.
fn tcp_server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
