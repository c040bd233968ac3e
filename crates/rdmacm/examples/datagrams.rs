//! Datagrams between two sockets: `datagrams 10.1.0.7:7174`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use rdmacm::DatagramSocket;

const LIMIT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: datagrams ADDRESS")?;
    let server = DatagramSocket::bind(&*address)?;
    server.set_deadline(LIMIT);
    thread::scope(|scope| {
        // A call that waits on the server also replies to the client that resolves it.
        let serving = scope.spawn(|| reply(&server));
        let (client, peer) = DatagramSocket::connect(server.local_addr(), LIMIT)?;
        client.set_deadline(LIMIT);
        client.send_to(b"ping", &peer.addr())?;
        let datagram = client.recv_from()?;
        println!("{}", String::from_utf8_lossy(&datagram));
        Ok(serving.join().map_err(|_| "the server panicked")??)
    })
}

fn reply(server: &DatagramSocket) -> rdmacm::Result<()> {
    let datagram = server.recv_from()?;
    if let Some(sender) = datagram.sender() {
        server.send_to(&datagram, &sender)?;
    }
    server.flush()
}
