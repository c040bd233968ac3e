//! What a forked child does with the streams that it has inherited.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm::RdmaStream;
use rdmacm_test_helpers::child_ends;

use super::Hosts;

fn is_readable(stream: &RdmaStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() > 0
}

/// Reads until there is nothing to read, and the descriptor says so.
fn settle(mut stream: &RdmaStream) {
    for _ in 0..10 {
        let error = stream.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        if !is_readable(stream) {
            return;
        }
    }
    panic!("the descriptor stays readable");
}

/// The descriptor of a stream is shared with the child.
#[test]
fn a_child_that_drops_a_stream_leaves_the_descriptor_of_its_parent_alone() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        server.set_nonblocking(true).unwrap();
        settle(&server);
        let mut inherited = Some((client, server, hosts));
        assert!(child_ends(|| drop(inherited.take())));
        let (mut client, mut server, _hosts) = inherited.unwrap();
        assert!(!is_readable(&server));
        client.write_all(b"still here").unwrap();
        assert!(is_readable(&server));
        let mut received = [0; 10];
        server.read_exact(&mut received).unwrap();
        assert_eq!(received, *b"still here");
        settle(&server);
    }
}
