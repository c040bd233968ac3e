//! TCP over streams.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use rdmacm_tests::{PATIENCE, Site, free_port};
use rdmacm_tests_macros::case;

use crate::c_tools::tool::Tool;
use crate::command::built;

/// A proxy whose RDMA side connects to this peer, and the address of its TCP side.
pub(crate) fn to_rdma(peer: SocketAddr) -> (Tool, SocketAddr) {
    let entrance = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    (start("to-rdma", entrance, peer), entrance)
}

/// A proxy whose RDMA side listens at this address, and whose TCP side connects to the peer.
pub(crate) fn from_rdma(listen: SocketAddr, peer: SocketAddr) -> Tool {
    start("from-rdma", listen, peer)
}

fn start(direction: &str, listen: SocketAddr, peer: SocketAddr) -> Tool {
    let mut proxy = Command::new(built("examples/tcp_proxy"));
    proxy.args([direction, &listen.to_string(), &peer.to_string()]);
    let mut proxy = Tool::spawn_on(&mut proxy, Stdio::null(), Stdio::piped());
    proxy.wait_for(&format!("listening on {listen}"));
    proxy
}

/// A client of TCP, a proxy, RDMA, a proxy, and a server of TCP, which sends back what it
/// received once the client has ended its direction.
#[case]
fn tcp_is_forwarded_over_rdma(site: &Site) {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let exit = server.local_addr().unwrap();
    let rdma = SocketAddr::from((site.v4, free_port()));
    let _from_rdma = from_rdma(rdma, exit);
    let (_to_rdma, entrance) = to_rdma(rdma);
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        }
    });
    for size in [1_000_003, 1] {
        let bytes: Vec<u8> = (0..251).cycle().take(size).collect();
        let mut client = TcpStream::connect(entrance).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(&bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        assert!(back == bytes, "{size} bytes");
    }
    server.join().unwrap();
}

/// The entrance is open, but nobody listens behind it: the client sees the end.
#[case]
fn a_connection_that_cannot_be_forwarded_is_closed(site: &Site) {
    let nobody = SocketAddr::from((site.v4, free_port()));
    let (_to_rdma, entrance) = to_rdma(nobody);
    let mut client = TcpStream::connect(entrance).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}
