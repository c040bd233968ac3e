//! Moves of queue pairs that every kernel refuses. The guest suite asks the kernels the same
//! (`verbs::states`).

use std::thread;

use libc::{EACCES, EINVAL, ENODATA, EOPNOTSUPP};
use rdmacm_core::{QpAttr, QpAttrMask, QpState};
use rdmacm_sim::{Fabric, Host};
use rdmacm_verbs::{CommandNumber, Error, QueuePair, SendOperation, SendRequest};

use crate::connected::{INIT, RTR, RTS, attributes, create};

/// A new queue pair, and its own host as that of its peer.
struct New {
    host: Host,
    queue_pair: QueuePair,
}

impl New {
    fn of(fabric: &Fabric) -> Self {
        let host = fabric.find_host("host").unwrap();
        let queue_pair = create(&host);
        Self { host, queue_pair }
    }

    fn roce() -> Self {
        Self::of(&Fabric::roce(["host"]))
    }

    fn attributes(&self, state: QpState) -> QpAttr {
        attributes(state, self.queue_pair.number(), &self.host)
    }

    #[track_caller]
    fn move_to(&self, state: QpState, mask: QpAttrMask) {
        let moved = self.queue_pair.modify(&self.attributes(state), mask);
        moved.unwrap();
        assert_eq!(self.queue_pair.state(), Ok(Some(state)));
    }

    #[track_caller]
    fn refused(&self, attr: &QpAttr, mask: QpAttrMask) -> i32 {
        let before = self.queue_pair.state();
        let Err(Error::Command(error)) = self.queue_pair.modify(attr, mask) else {
            panic!("{attr:?} under {mask:?} is taken");
        };
        assert_eq!(self.queue_pair.state(), before);
        error.errno
    }
}

#[test]
fn an_attribute_that_is_missing_or_too_much() {
    let new = New::roce();
    for (state, mask, too_much) in [
        (QpState::INIT, INIT, QpAttrMask::SQ_PSN),
        (QpState::RTR, RTR, QpAttrMask::PORT),
        (QpState::RTS, RTS, QpAttrMask::AV),
    ] {
        let attr = new.attributes(state);
        for missing in mask - QpAttrMask::STATE {
            let errno = new.refused(&attr, mask - missing);
            assert_eq!(errno, EINVAL, "{missing:?}");
        }
        assert_eq!(new.refused(&attr, mask | too_much), EINVAL);
        new.move_to(state, mask);
    }
}

#[test]
fn a_state_that_does_not_follow() {
    let new = New::roce();
    // A new queue pair is in no error.
    for (state, mask) in [
        (QpState::ERR, QpAttrMask::STATE),
        (QpState::RTR, RTR),
        (QpState::RTS, RTS),
        (QpState::new(7), INIT),
    ] {
        assert_eq!(new.refused(&new.attributes(state), mask), EINVAL);
    }
    new.move_to(QpState::INIT, INIT);
    new.move_to(QpState::ERR, QpAttrMask::STATE);
    assert_eq!(new.refused(&new.attributes(QpState::INIT), INIT), EINVAL);
    new.move_to(QpState::RESET, QpAttrMask::STATE);
    new.move_to(QpState::INIT, INIT);
}

#[test]
fn a_port_that_does_not_exist() {
    let new = New::roce();
    let mut attr = new.attributes(QpState::INIT);
    attr.port_number = 2;
    assert_eq!(new.refused(&attr, INIT), EINVAL);
    new.move_to(QpState::INIT, INIT);
    let mut attr = new.attributes(QpState::RTR);
    attr.ah_attr.port_number = 2;
    assert_eq!(new.refused(&attr, RTR), EINVAL);
    attr.ah_attr.port_number = 1;
    // The port of the alternate path, and that which the path names.
    let with_path = RTR | QpAttrMask::ALT_PATH;
    for ports in [(2, 1), (1, 2)] {
        (
            attr.alternate_port_number,
            attr.alternate_ah_attr.port_number,
        ) = ports;
        assert_eq!(new.refused(&attr, with_path), EINVAL);
    }
}

#[test]
fn a_path_without_a_source() {
    let new = New::roce();
    new.move_to(QpState::INIT, INIT);
    let mut attr = new.attributes(QpState::RTR);
    attr.ah_attr.is_global = 0;
    assert_eq!(new.refused(&attr, RTR), EINVAL);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.source_gid_index = 200;
    assert_eq!(new.refused(&attr, RTR), ENODATA);
    new.move_to(QpState::RTR, RTR);
}

#[test]
fn an_alternate_path() {
    let new = New::roce();
    new.move_to(QpState::INIT, INIT);
    let mut attr = new.attributes(QpState::RTR);
    attr.alternate_port_number = 1;
    attr.alternate_ah_attr = attr.ah_attr;
    assert_eq!(new.refused(&attr, RTR | QpAttrMask::ALT_PATH), EINVAL);
}

#[test]
fn a_request_before_the_queue_pair_may_send() {
    let new = New::roce();
    let post = || {
        let buffer = new.queue_pair.protection_domain().allocate(8).unwrap();
        let request = SendRequest::new(SendOperation::Send, buffer);
        let refused = new
            .queue_pair
            .post_send(request)
            .map_err(|refused| refused.error);
        refused.map(drop).map_err(|error| match error {
            Error::Command(error) => error.errno,
            error => panic!("{error}"),
        })
    };
    assert_eq!(post(), Err(EINVAL));
    for (state, mask) in [(QpState::INIT, INIT), (QpState::RTR, RTR)] {
        new.move_to(state, mask);
        assert_eq!(post(), Err(EINVAL), "{state:?}");
    }
    new.move_to(QpState::RTS, RTS);
    assert!(post().is_ok());
}

/// A queue pair of rxe is reset by two commands.
#[test]
fn a_reset_that_is_refused_halfway() {
    let new = New::roce();
    let modify = CommandNumber::MODIFY_QP;
    let [first, second] = [(); 2].map(|()| new.host.hold_next(modify));
    let reset = new.attributes(QpState::RESET);
    let refused = thread::scope(|scope| {
        let moving = scope.spawn(|| new.queue_pair.modify(&reset, QpAttrMask::STATE));
        first.wait();
        drop(first);
        second.wait();
        new.host.fail_next(modify, 1, EACCES);
        drop(second);
        moving.join().unwrap()
    });
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(EACCES));
    assert!(new.queue_pair.is_broken());
    new.move_to(QpState::RESET, QpAttrMask::STATE);
    assert!(!new.queue_pair.is_broken());
}

#[test]
fn unknown_attributes() {
    for fabric in [Fabric::roce(["host"]), Fabric::iwarp(["host"])] {
        let new = New::of(&fabric);
        let attr = new.attributes(QpState::INIT);
        for unknown in [21, 25, 30] {
            let unknown = QpAttrMask::from_bits_retain(1 << unknown);
            assert_eq!(new.refused(&attr, INIT | unknown), EOPNOTSUPP);
        }
    }
}
