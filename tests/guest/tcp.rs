//! Peers that connect by TCP.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_tests::PATIENCE;

/// Accepts a peer, which may have failed and never come.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let mut descriptors = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut descriptors, timeout).unwrap(), 1, "nobody came");
    listener.accept().unwrap().0
}
