//! Commands of the devices that fail: the error names the stage and the number, and nothing
//! is left behind.

use std::thread;

use libc::{EACCES, EAGAIN, EINVAL, EIO, ENOMEM, ENOSPC, EPERM};
use rdmacm::verbs::CommandNumber;
use rdmacm::{Cause, Error, MessageOptions, Stage};

use super::{ALL, Hosts, SECOND};

type Failures = (CommandNumber, &'static [i32]);

/// What a side executes to create a queue pair that carries messages.
const CREATING: [Failures; 7] = [
    (CommandNumber::GET_CONTEXT, &[EINVAL, ENOMEM, EPERM]),
    (CommandNumber::CREATE_COMP_CHANNEL, &[EINVAL, ENOMEM]),
    (CommandNumber::ALLOC_PD, &[ENOMEM, ENOSPC]),
    (CommandNumber::CREATE_CQ, &[EINVAL, ENOMEM]),
    (CommandNumber::REG_MR, &[EINVAL, ENOMEM, EAGAIN]),
    (CommandNumber::CREATE_QP, &[EINVAL, ENOMEM, ENOSPC]),
    (CommandNumber::MODIFY_QP, &[EINVAL, ENOMEM]),
];

#[track_caller]
fn assert_refused(error: &Error, stage: Stage, command: CommandNumber, errno: i32) {
    let context = format!("{command:?} {errno}: {error}");
    assert_eq!(error.stage(), stage, "{context}");
    assert_eq!(error.raw_os_error(), Some(errno), "{context}");
}

#[test]
fn connecting() {
    for hosts in Hosts::each() {
        for (command, errnos) in CREATING {
            for errno in errnos {
                hosts.client.fail_next(command, 1, *errno);
                let error = hosts.connector().connect().unwrap_err();
                assert_refused(&error, Stage::QueuePair, command, *errno);
                hosts.assert_clean();
            }
        }
        drop(hosts.connect());
        hosts.assert_clean();
    }
}

#[test]
fn accepting() {
    for hosts in Hosts::each() {
        for (command, errnos) in CREATING {
            for errno in errnos {
                hosts.server.fail_next(command, 1, *errno);
                thread::scope(|scope| {
                    let connecting = scope.spawn(|| hosts.connector().connect().unwrap_err());
                    let incoming = hosts.listener.accept(None).unwrap();
                    let error = incoming.accept().unwrap_err();
                    assert_refused(&error, Stage::QueuePair, command, *errno);
                    assert!(connecting.join().unwrap().is_rejected());
                });
                hosts.assert_clean();
            }
        }
        drop(hosts.connect());
        hosts.assert_clean();
    }
}

/// Both sides move their queue pairs to RTR and RTS once they know each other.
#[test]
fn establishing() {
    let hosts = Hosts::roce();
    for errno in [EINVAL, ENOMEM] {
        thread::scope(|scope| {
            let connecting = scope.spawn(|| hosts.connector().connect().unwrap_err());
            let incoming = hosts.listener.accept(None).unwrap();
            // The client has sent its request: what it modifies next is for the reply.
            let command = CommandNumber::MODIFY_QP;
            hosts.client.fail_next(command, 1, errno);
            incoming.accept().unwrap_err();
            let error = connecting.join().unwrap();
            assert_refused(&error, Stage::Connect, command, errno);
        });
        hosts.assert_clean();
    }
}

#[test]
fn registering_memory() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        for errno in [ENOMEM, EAGAIN, EINVAL] {
            hosts.client.fail_next(CommandNumber::REG_MR, 1, errno);
            let error = near.allocate(16).unwrap_err();
            assert_refused(&error, Stage::Register, CommandNumber::REG_MR, errno);
        }
        // The connection is not harmed.
        near.send(b"still here").unwrap();
        assert_eq!(far.receive().unwrap().unwrap()[..], *b"still here");
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn waiting_for_a_completion() {
    let hosts = Hosts::roce();
    let command = CommandNumber::REQ_NOTIFY_CQ;
    let (near, far) = hosts.connect();
    hosts.client.fail_next(command, 1, EINVAL);
    let error = near.receive().unwrap_err();
    assert_refused(&error, Stage::Receive, command, EINVAL);
    drop((near, far));
    hosts.assert_clean();
}

/// The notification is not requested, so nobody would learn of the end.
#[test]
fn waiting_for_a_transfer() {
    let command = CommandNumber::REQ_NOTIFY_CQ;
    for flushes in [false, true] {
        let hosts = Hosts::roce();
        let (near, far) = hosts.connect();
        near.set_deadline(600 * SECOND);
        hosts.fabric.set_delay(SECOND);
        let began = hosts.fabric.now();
        let memory = near.allocate(4).unwrap();
        let region = far.expose(4, ALL).unwrap();
        let transfer = near.start_write(memory, region.remote()).unwrap();
        hosts.client.fail_next(command, 1, EACCES);
        if flushes {
            near.flush().unwrap_err();
        }
        let error = transfer.wait().unwrap_err();
        assert_eq!(error.error.raw_os_error(), Some(EACCES), "{error}");
        assert!(hosts.fabric.now() - began < 60 * SECOND);
    }
}

#[test]
fn sending() {
    for hosts in Hosts::each() {
        let command = CommandNumber::POST_SEND;
        let (near, far) = hosts.connect();
        hosts.client.fail_next(command, 1, ENOMEM);
        let error = near.send(b"lost").unwrap_err();
        assert_refused(&error, Stage::Send, command, ENOMEM);
        drop((near, far));
        hosts.assert_clean();
    }
}

/// The kernel refuses to process a message that is in the queue already: it takes no room, and
/// nobody waits for it.
#[test]
fn sending_a_later_message() {
    for hosts in Hosts::each() {
        let command = CommandNumber::POST_SEND;
        let one = MessageOptions::new().sends(1);
        let (near, far) = hosts.connect_with(one, MessageOptions::new());
        near.send(b"first").unwrap();
        near.flush().unwrap();
        hosts.client.fail_next(command, 1, ENOMEM);
        let error = near.send(b"lost").unwrap_err();
        assert_refused(&error, Stage::Send, command, ENOMEM);
        near.flush().unwrap();
        // The device would process no later ones either.
        near.send(b"later").unwrap_err();
        drop((near, far));
        hosts.assert_clean();
    }
}

/// `EIO` means that the kernel has disconnected the file from the device.
#[test]
fn a_device_that_is_gone() {
    let hosts = Hosts::roce();
    for command in [CommandNumber::POST_SEND, CommandNumber::REQ_NOTIFY_CQ] {
        let (near, far) = hosts.connect();
        hosts.client.fail_next(command, 1, EIO);
        let error = match command {
            CommandNumber::POST_SEND => near.send(b"lost").unwrap_err(),
            _ => near.receive().unwrap_err(),
        };
        let Cause::Device { error, .. } = error.cause() else {
            panic!("{error}");
        };
        assert_eq!(error.kind(), std::io::ErrorKind::NotConnected);
        drop((near, far));
        hosts.assert_clean();
    }
}
