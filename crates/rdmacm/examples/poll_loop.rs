//! The connection manager in an event loop of poll(2): resolves an address and its route.
//! `poll_loop 10.1.0.7:7471`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm::core::{CmAddr, Event, EventChannel, EventKind, PortSpace};

const TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let destination = std::env::args().nth(1).ok_or("usage: poll_loop ADDRESS")?;
    let destination: CmAddr = destination.parse()?;
    let channel = EventChannel::open()?;
    let id = channel.create_id(PortSpace::TCP)?;
    id.resolve_addr(None, destination, TIMEOUT)?;
    loop {
        // Other descriptors of the program go here as well.
        let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE)?;
        while let Some(event) = channel.try_next_event()? {
            if handle(&event)? {
                return Ok(());
            }
        }
    }
}

/// Whether the route is resolved.
fn handle(event: &Event) -> Result<bool, Box<dyn Error>> {
    if let Some(failure) = event.failure() {
        return Err(failure.to_string().into());
    }
    let id = event.id();
    match event.kind() {
        EventKind::AddrResolved => id.resolve_route(TIMEOUT)?,
        EventKind::RouteResolved => {
            let device = id.rdma_device()?.map(|device| device.name);
            println!("via {}", device.as_deref().unwrap_or("an unknown device"));
            return Ok(true);
        }
        other => println!("{other}"),
    }
    Ok(false)
}
