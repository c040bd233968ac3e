//! Whether a socket listens on an address.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket,
    sockopt,
};

/// A socket that cannot be bound while another one listens on the address. It belongs to
/// the network namespace of the thread that made it, whichever thread binds it.
#[derive(Clone, Debug)]
pub(super) struct SocketProbe {
    socket: Arc<OwnedFd>,
    address: SockaddrStorage,
}

impl SocketProbe {
    /// A probe of an address, on an interface or on any; `None` unless a socket listens there
    /// now.
    pub(super) fn new(address: SocketAddr, interface: Option<&str>) -> Option<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, SockProtocol::Tcp).ok()?;
        // Connections that were accepted have the same port, and may outlive the listener.
        setsockopt(&socket, sockopt::ReuseAddr, &true).ok()?;
        if address.is_ipv6() {
            // A socket that listens on IPv4 only does not matter.
            setsockopt(&socket, sockopt::Ipv6V6Only, &true).ok()?;
        }
        if let Some(interface) = interface {
            // siw listens on a wildcard address once for each interface.
            let interface = OsString::from(interface);
            setsockopt(&socket, sockopt::BindToDevice, &interface).ok()?;
        }
        let probe = Self {
            socket: Arc::new(socket),
            address: address.into(),
        };
        (probe.try_bind() == Err(Errno::EADDRINUSE)).then_some(probe)
    }

    /// Whether no socket listens on the address any more. The probe has taken it then, and
    /// must be dropped. Any other refusal (the address was removed, a privileged port) proves
    /// nothing.
    pub(super) fn bind(&self) -> bool {
        self.try_bind().is_ok()
    }

    fn try_bind(&self) -> Result<(), Errno> {
        bind(self.socket.as_raw_fd(), &self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    fn listen(address: &str) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn an_address_cannot_be_bound_while_a_socket_listens() {
        for address in ["127.71.5.1:0", "[::1]:0"] {
            let (listener, address) = listen(address);
            let probe = SocketProbe::new(address, None).unwrap();
            assert!(!probe.bind() && !probe.bind());
            drop(listener);
            assert!(probe.bind());
        }
    }

    #[test]
    fn a_wildcard_address_is_probed_on_an_interface() {
        let (_listener, address) = listen("127.71.6.1:0");
        let any = SocketAddr::from(([0; 4], address.port()));
        let probe = SocketProbe::new(any, Some("lo")).unwrap();
        assert!(!probe.bind() && !probe.bind());
        assert!(SocketProbe::new(any, Some("no such one")).is_none());
    }

    #[test]
    fn connections_do_not_hold_the_address() {
        let (listener, address) = listen("127.71.7.1:0");
        let mut open = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut closed = TcpStream::connect(address).unwrap();
        // Closed on this side first, it leaves the port in TIME_WAIT.
        drop(listener.accept().unwrap());
        assert_eq!(closed.read(&mut [0]).unwrap(), 0);
        drop(closed);
        let probe = SocketProbe::new(address, None).unwrap();
        drop(listener);
        assert!(probe.bind());
        drop(accepted);
        assert_eq!(open.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn an_address_without_a_listener_is_not_probed() {
        let (listener, address) = listen("127.71.8.1:0");
        drop(listener);
        assert!(SocketProbe::new(address, None).is_none());
        // Of no machine (RFC 5737).
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], address.port()));
        assert!(SocketProbe::new(elsewhere, None).is_none());
    }
}
