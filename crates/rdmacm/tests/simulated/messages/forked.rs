//! A forked child that drops what it has inherited.
#![expect(unsafe_code, reason = "forks")]

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};

use super::Hosts;

/// The rings of a simulated device are shared with the child.
#[test]
fn a_child_that_drops_a_connection_leaves_that_of_its_parent_alone() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        // SAFETY: no other thread uses what the child drops.
        let child = match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                // Ends a child that hangs.
                alarm::set(30);
                drop((client, server, hosts));
                // SAFETY: the child ends at once.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => child,
        };
        let ended = waitpid(child, None);
        assert_eq!(ended, Ok(WaitStatus::Exited(child, 0)));
        client.send(b"still here").unwrap();
        let message = server.receive().unwrap().unwrap();
        assert_eq!(*message, *b"still here");
    }
}
