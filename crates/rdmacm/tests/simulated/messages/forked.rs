//! What a forked child does with what it has inherited.

use rdmacm::{CLOSE_DEADLINE, Cause, Error};

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

#[test]
fn a_child_neither_closes_a_connection_of_its_parent_nor_waits_for_its_end() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        in_child(|| {
            let error = client.closed(None).unwrap_err();
            assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
            client.close(CLOSE_DEADLINE).unwrap_err();
        });
        client.send(b"still here").unwrap();
        assert_eq!(*server.receive().unwrap().unwrap(), *b"still here");
    }
}

/// It completes in the parent only.
#[test]
fn a_child_waits_for_no_transfer_of_its_parent() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let buffer = client.allocate(5).unwrap();
        let mut inherited = Some(client.start_send(buffer).unwrap());
        in_child(|| {
            let lost = inherited.take().unwrap().wait().unwrap_err();
            let error = Error::from(lost);
            assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
        });
        inherited.unwrap().wait().unwrap();
        assert_eq!(*server.receive().unwrap().unwrap(), [0; 5]);
    }
}
