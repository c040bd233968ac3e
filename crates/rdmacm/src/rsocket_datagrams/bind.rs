//! Opening a datagram socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use rdmacm_addrinfo::AddrInfoResolver;
use rdmacm_core::CmAddr;

use super::address::peer_address;
use super::resolution_service::ResolutionService;
use super::socket::Socket;
use crate::attempt::Attempt;
use crate::connect::{ConnectAttempts, ConnectConfig, PeerAddr};
use crate::datagrams::{self, DatagramConfig};
use crate::error::{Cause, Error, Result, Target};
use crate::event_loop::{EventLoop, EventSource};
use crate::stage::Stage;

/// How often another port is tried, if the kernel chooses one for the UDP socket that another
/// queue pair has.
const MAX_PORTS: usize = 16;

/// How many datagrams a socket has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramSizes {
    pub(crate) receives: u32,
    pub(crate) sends: u32,
}

/// Those of librdmacm: 128 KiB of its buffers.
impl Default for DatagramSizes {
    fn default() -> Self {
        Self {
            receives: 64,
            sends: 64,
        }
    }
}

impl DatagramSizes {
    fn config(self) -> DatagramConfig {
        DatagramConfig {
            receives: self.receives,
            sends: self.sends,
            listens: false,
            ..DatagramConfig::default()
        }
    }
}

/// Opens a socket on the device of an address.
pub(crate) fn bind(
    event_loop: &Arc<EventLoop>,
    resolver: &Arc<AddrInfoResolver>,
    address: SocketAddr,
    sizes: DatagramSizes,
    peer: Option<SocketAddr>,
) -> Result<Socket> {
    let attempt = Attempt::new(event_loop, None, Target::default());
    let attempt = attempt.at_address(CmAddr::from(address));
    let mut ports = 1;
    loop {
        let bound = bind_once(&attempt, address, sizes, peer);
        if address.port() == 0 && ports < MAX_PORTS && bound.as_ref().is_err_and(is_taken) {
            ports += 1;
            continue;
        }
        let (datagrams, service) = bound?;
        return Ok(Socket::new(event_loop, resolver, datagrams, &service));
    }
}

fn bind_once(
    attempt: &Attempt,
    address: SocketAddr,
    sizes: DatagramSizes,
    peer: Option<SocketAddr>,
) -> Result<(datagrams::Socket, Arc<ResolutionService>)> {
    let refused = |error: io::Error| attempt.fail(Stage::Bind, Cause::Udp(error));
    let udp = UdpSocket::bind(address).map_err(refused)?;
    let address = udp.local_addr().map_err(refused)?;
    let datagrams = datagrams::Socket::open(attempt, CmAddr::from(address), &sizes.config())?;
    let queue_pair = datagrams.queue_pair().queue_pair();
    let max_arrivals = usize::try_from(sizes.receives).unwrap_or(usize::MAX);
    let service = ResolutionService::new(udp, address, queue_pair, peer, max_arrivals);
    let service = Arc::new(service.map_err(refused)?);
    let source: Arc<dyn EventSource> = service.clone();
    let watched = attempt.event_loop.watch(&source);
    watched.map_err(|errno| refused(errno.into()))?;
    Ok((datagrams, service))
}

/// Whether another id has the port. The address is this host's: UDP has it.
fn is_taken(error: &Error) -> bool {
    let errno = error.raw_os_error();
    matches!(error.cause(), Cause::Refused(_))
        && matches!(errno, Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

/// Opens a socket on the device that leads to a peer, which becomes its only peer.
pub(crate) async fn bind_for(
    event_loop: &Arc<EventLoop>,
    resolver: &Arc<AddrInfoResolver>,
    peer: &PeerAddr,
    sizes: DatagramSizes,
) -> Result<Socket> {
    let config = ConnectConfig {
        options: sizes.config().id,
        ..ConnectConfig::default()
    };
    let peer = peer.0.with_ip_addresses();
    let attempts = ConnectAttempts {
        event_loop,
        resolver,
        peer: &peer,
        config: &config,
    };
    let routed = attempts.resolve().await?;
    let attempt = Attempt::until(event_loop, config.deadline, peer.target());
    let failed = |cause: Cause| attempt.fail(Stage::Bind, cause);
    let id = routed.id.id();
    let address = |address: rdmacm_core::Result<Option<CmAddr>>| {
        let address = address.map_err(|error| failed(error.into()))?;
        let address = address.as_ref().and_then(CmAddr::socket_addr);
        address.ok_or_else(|| failed(Cause::NoAddress))
    };
    let mut local = address(id.local_addr())?;
    let peer = address(id.peer_addr())?;
    local.set_port(0);
    let peer = peer_address(peer, local).ok_or_else(|| failed(Cause::NotAPeerAddress))?;
    bind(event_loop, resolver, local, sizes, Some(peer))
}
