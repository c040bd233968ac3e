//! A multicast group of two sockets: `multicast 10.1.0.7`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use rdmacm::DatagramSocket;
use rdmacm::core::CmAddr;

const LIMIT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let host: IpAddr = std::env::args()
        .nth(1)
        .ok_or("usage: multicast IP")?
        .parse()?;
    // On RoCE v2 the kernel joins only IPv4 groups.
    let group = CmAddr::from(([239, 71, 74, 1], 0));
    let [sender, receiver] = [
        DatagramSocket::bind((host, 0))?,
        DatagramSocket::bind((host, 0))?,
    ];
    let to = sender.join_multicast(group, LIMIT)?;
    receiver.join_multicast(group, LIMIT)?;
    receiver.set_deadline(LIMIT);
    sender.send_to(b"to all members", &to)?;
    let datagram = receiver.recv_from()?;
    println!("{}", String::from_utf8_lossy(&datagram));
    receiver.leave_multicast(group)?;
    sender.leave_multicast(group)?;
    Ok(())
}
