//! A forked child that drops what it has inherited.

use super::Hosts;
use crate::forked::in_child;

/// The rings of a simulated device are shared with the child.
#[test]
fn a_child_that_drops_a_connection_leaves_that_of_its_parent_alone() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let mut inherited = Some((client, server, hosts));
        in_child(|| drop(inherited.take()));
        let (client, server, _hosts) = inherited.unwrap();
        client.send(b"still here").unwrap();
        let message = server.receive().unwrap().unwrap();
        assert_eq!(*message, *b"still here");
    }
}
