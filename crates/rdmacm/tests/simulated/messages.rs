//! Messages, reads and writes of connections.

use rdmacm::Cause;
use rdmacm::core::AccessFlags;
use rdmacm::verbs::WcStatus;

use super::*;

#[test]
fn messages_are_exchanged() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let echo = thread::spawn(move || {
        while let Some(message) = far.receive().unwrap() {
            far.send(&message).unwrap();
        }
    });
    for number in 0..100_u8 {
        near.send(&[number; 17]).unwrap();
        assert_eq!(*near.receive().unwrap().unwrap(), [number; 17]);
    }
    near.close(CLOSE_DEADLINE).unwrap();
    echo.join().unwrap();
}

#[test]
fn messages_arrive_late_but_all() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    hosts.fabric.set_delay(Duration::from_secs(1));
    let begin = hosts.fabric.now();
    let sender = thread::spawn(move || {
        near.send(b"late").unwrap();
        near.flush().unwrap();
        near
    });
    assert_eq!(*far.receive().unwrap().unwrap(), *b"late");
    assert!(hosts.fabric.now().duration_since(begin) >= Duration::from_secs(1));
    drop(sender.join().unwrap());
}

#[test]
fn memory_is_read_and_written() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
    let region = far.expose(16, access).unwrap();
    region.write(0, b"to be read");
    let buffer = near.allocate(10).unwrap();
    let buffer = near
        .read(buffer, region.remote().part(..10).unwrap())
        .unwrap();
    assert_eq!(buffer[..], *b"to be read");
    near.write(buffer, region.remote().part(6..).unwrap())
        .unwrap();
    let mut bytes = [0; 10];
    region.read(6, &mut bytes);
    assert_eq!(bytes, *b"to be read");
}

#[test]
fn a_peer_that_does_not_respond_fails_what_is_sent() {
    let hosts = Hosts::roce();
    let (near, _far) = hosts.connect();
    hosts.server.set_responding(false);
    let begin = hosts.fabric.now();
    near.send(b"lost").unwrap();
    let error = near.flush().unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
    assert!(hosts.fabric.now() > begin);
}

#[test]
fn a_peer_that_disconnects_ends_the_messages() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let peer = thread::spawn(move || {
        far.send(b"last").unwrap();
        far.close(CLOSE_DEADLINE).unwrap();
    });
    assert_eq!(*near.receive().unwrap().unwrap(), *b"last");
    assert!(near.receive().unwrap().is_none());
    drop(near);
    peer.join().unwrap();
}
