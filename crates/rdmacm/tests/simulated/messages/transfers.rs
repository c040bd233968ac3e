//! Transfers that are posted now and waited for later.

use rdmacm::{Cause, MessageOptions, Stage};

use super::{ALL, Hosts, SECOND};

#[test]
fn transfers_of_all_kinds_are_in_flight_at_once() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let region = far.expose(16, ALL).unwrap();
    let [first, second] = [0..8, 8..16].map(|part| region.remote().slice(part).unwrap());
    region.write(8, b"readable");
    let buffer = |bytes: &[u8; 8]| {
        let mut buffer = near.allocate(8).unwrap();
        buffer.copy_from_slice(bytes);
        buffer
    };
    hosts.fabric.set_delay(SECOND);
    let began = hosts.fabric.now();
    let write = near.start_write(buffer(b"written!"), first).unwrap();
    let send = near.start_send(buffer(b"a letter")).unwrap();
    let read = near.start_read(buffer(b"--------"), second).unwrap();
    assert!(!write.is_done() && !send.is_done() && !read.is_done());
    // In any order.
    assert_eq!(read.wait().unwrap()[..], *b"readable");
    assert!(write.is_done() && send.is_done());
    assert_eq!(send.wait().unwrap()[..], *b"a letter");
    assert_eq!(write.wait().unwrap()[..], *b"written!");
    assert_eq!(hosts.fabric.now() - began, 2 * SECOND);
    let mut written = [0; 8];
    region.read(0, &mut written);
    assert_eq!(written, *b"written!");
    assert_eq!(far.receive().unwrap().unwrap()[..], *b"a letter");
}

#[test]
fn a_transfer_that_is_dropped_is_done_all_the_same() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let region = far.expose(8, ALL).unwrap();
    hosts.fabric.set_delay(SECOND);
    let regions = || hosts.client.verbs_objects().memory_regions;
    let before = regions();
    let mut buffer = near.allocate(8).unwrap();
    buffer.copy_from_slice(b"written!");
    drop(near.start_write(buffer, region.remote()).unwrap());
    // The device may still read it.
    assert_eq!(regions(), before + 1);
    near.flush().unwrap();
    assert_eq!(regions(), before);
    let mut written = [0; 8];
    region.read(0, &mut written);
    assert_eq!(written, *b"written!");
    drop((region, near, far));
    hosts.assert_clean();
}

#[test]
fn a_deadline_leaves_the_memory_to_the_device() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let region = far.expose(8, ALL).unwrap();
        let regions = || hosts.client.verbs_objects().memory_regions;
        let before = regions();
        hosts.fabric.set_delay(SECOND);
        near.set_deadline(SECOND / 2);
        let failed = near.read(near.allocate(8).unwrap(), region.remote());
        let failed = failed.unwrap_err();
        assert!(matches!(failed.error.cause(), Cause::Deadline));
        assert_eq!(failed.error.stage(), Stage::Read);
        assert!(failed.buffer.is_none());
        assert_eq!(regions(), before + 1);
        let error = near.flush().unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        near.set_deadline(None);
        near.flush().unwrap();
        assert_eq!(regions(), before);
    }
}

#[test]
fn a_transfer_without_room_returns_its_memory() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().sends(1);
        let (near, far) = hosts.connect_with(options.clone(), options);
        let region = far.expose(8, ALL).unwrap();
        hosts.fabric.set_delay(SECOND);
        let first = near.start_read(near.allocate(8).unwrap(), region.remote());
        near.set_deadline(SECOND / 2);
        let second = near.start_read(near.allocate(8).unwrap(), region.remote());
        let failed = second.unwrap_err();
        assert!(matches!(failed.error.cause(), Cause::Deadline));
        assert_eq!(failed.buffer.unwrap().len(), 8);
        near.set_deadline(None);
        first.unwrap().wait().unwrap();
    }
}

#[test]
fn one_deadline_is_for_the_wait_for_room_and_the_transfer() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().sends(1);
        let (near, far) = hosts.connect_with(options.clone(), options);
        let region = far.expose(8, ALL).unwrap();
        // A read takes two seconds.
        hosts.fabric.set_delay(SECOND);
        let first = near.start_read(near.allocate(8).unwrap(), region.remote());
        near.set_deadline(3 * SECOND);
        let failed = near.read(near.allocate(8).unwrap(), region.remote());
        let error = failed.unwrap_err().error;
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        assert_eq!(error.elapsed(), 3 * SECOND);
        first.unwrap().wait().unwrap();
    }
}

#[test]
fn a_closed_connection_returns_the_memory() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let region = far.expose(8, ALL).unwrap();
        let remote = region.remote();
        drop(far);
        assert!(near.receive().unwrap().is_none());
        let failed = near
            .read(near.allocate(8).unwrap(), remote)
            .map_err(|failed| (failed.buffer.is_some(), failed.error.is_closed()));
        assert_eq!(failed.unwrap_err(), (true, true));
    }
}

#[test]
fn registered_memory_is_sent_without_a_copy() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().size(10_000);
        // Longer than what this side copies.
        let (near, far) = hosts.connect_with(MessageOptions::new(), options);
        let mut buffer = near.allocate(10_000).unwrap();
        buffer.fill(7);
        let buffer = near.send_buffer(buffer).unwrap();
        assert_eq!(far.receive().unwrap().unwrap()[..], buffer[..]);
        let part = buffer.slice(10..20).unwrap();
        near.send_buffer(part).unwrap();
        assert_eq!(far.receive().unwrap().unwrap()[..], [7; 10]);
    }
}
