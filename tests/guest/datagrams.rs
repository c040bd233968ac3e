//! Datagram sockets: blocking, async, and in groups.

use rdmacm::core::SidrStatus;
use rdmacm::{Cause, DatagramAddr, DatagramSocket};
use rdmacm_tests::{PATIENCE, Site};

pub(crate) mod absent_peers;
pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod groups;
pub(crate) mod removal;
pub(crate) mod unsupported;

/// A socket of the site's device.
pub(crate) fn bound(site: &Site) -> DatagramSocket {
    let socket = DatagramSocket::bind(site.v4(0)).unwrap();
    socket.set_deadline(PATIENCE);
    socket
}

pub(crate) fn service(socket: &DatagramSocket) -> String {
    socket.local_addr().port().to_string()
}

/// The status that a peer has replied with.
fn status(cause: &Cause) -> Option<SidrStatus> {
    match cause {
        Cause::Event(failure) => SidrStatus::from_status(failure.status()),
        _ => None,
    }
}

/// Whether a request has failed, or those after it were flushed.
pub(crate) fn is_failure(cause: &Cause) -> bool {
    matches!(cause, Cause::Request(_) | Cause::QueuePairFailed)
}

/// Connects a client while the server's socket answers its request.
fn asked(site: &Site, server: &DatagramSocket) -> (DatagramSocket, DatagramAddr) {
    let (client, peer) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let node = server.local_addr().ip().unwrap().to_string();
            let asked = DatagramSocket::connect((node, service(server)), PATIENCE);
            let (client, peer) = asked.unwrap();
            client.set_deadline(PATIENCE);
            // Ends the server's wait.
            client.send_to(b"asked", &peer.addr()).unwrap();
            (client, peer)
        });
        assert_eq!(*server.recv_from().unwrap(), *b"asked", "{}", site.device);
        asking.join().unwrap()
    });
    (client, peer.addr())
}
