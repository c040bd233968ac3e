//! Connecting, accepting, refusing and parting.

use std::thread;

use rdmacm_abi::{
    Accept, ConnParam as Wire, Connect, Disconnect, Ece, EventNumber, EventParam, Listen, Notify,
    Reject, RejectReason, UdParam as UdWire,
};
use rdmacm_core::{
    CmId, CommandNumber, ConnParam, Error, IdHandle, Notification, PortSpace, RDMA_UDP_QKEY,
    UdParam,
};
use zerocopy::FromZeros;

use crate::script::FIRST_ID;
use crate::{Fixture, errno, invalid};

#[test]
fn connect_sends_the_parameters() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let ece = Ece {
        vendor_id: 0x15b3,
        options: 9,
    };
    let param = ConnParam::new()
        .qp_number(0xff_ffff)
        .srq(true)
        .responder_resources(3)
        .initiator_depth(5)
        .flow_control(true)
        .retry_count(2)
        .rnr_retry_count(4)
        .private_data(b"hello")
        .unwrap()
        .private_data_behind(b"head:")
        .unwrap()
        .ece(ece);
    assert_eq!(param.retries(), 2);
    id.connect(param).unwrap();
    let request: Connect = fixture.ucma.only(CommandNumber::CONNECT);
    assert_eq!((request.id, request.ece), (FIRST_ID, ece));
    let expected = Wire {
        srq: 1,
        responder_resources: 3,
        initiator_depth: 5,
        flow_control: 1,
        retry_count: 2,
        rnr_retry_count: 4,
        ..Wire::new(0xff_ffff)
            .with_private_data(b"head:hello")
            .unwrap()
    };
    assert_eq!(request.param, expected);
}

#[test]
fn a_sidr_request_carries_data_and_the_reply_a_queue_pair() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::UDP);
    let child = fixture.child();
    let param = UdParam::new().qp_number(7).qkey(RDMA_UDP_QKEY);
    let param = param.private_data(b"here").unwrap();
    child.accept(ConnParam::from(&param)).unwrap();
    let request: Accept = fixture.ucma.only(CommandNumber::ACCEPT);
    let Wire {
        qp_number, qkey, ..
    } = request.param;
    assert_eq!((qp_number, qkey), (7, RDMA_UDP_QKEY));
    assert_eq!(request.param.private_data(), b"here");
    // Nothing follows that would have to be read first.
    child.reject(b"").unwrap();
}

/// A connect request that asks for these depths and options.
fn asked(fixture: &Fixture, depths: [u8; 2], ece: Ece) -> CmId {
    let [responder_resources, initiator_depth] = depths;
    let mut event = fixture.ucma.event(EventNumber::CONNECT_REQUEST, 0);
    event.id = 61;
    event.ece = ece;
    event.param = EventParam::from_conn(&Wire {
        responder_resources,
        initiator_depth,
        ..Wire::new(0x11)
    });
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    event.into_child().unwrap()
}

#[test]
fn accept_grants_what_the_peer_requests() {
    let fixture = Fixture::new();
    let listener = fixture.id(PortSpace::TCP);
    listener.listen(3).unwrap();
    let request: Listen = fixture.ucma.only(CommandNumber::LISTEN);
    assert_eq!((request.id, request.backlog), (FIRST_ID, 3));
    let child = asked(&fixture, [2, 6], Ece::default());
    child.accept(ConnParam::new().qp_number(0x22)).unwrap();
    let accept: Accept = fixture.ucma.only(CommandNumber::ACCEPT);
    assert_eq!((accept.id, accept.param.qp_number), (61, 0x22));
    let depths = [
        accept.param.responder_resources,
        accept.param.initiator_depth,
    ];
    assert_eq!(depths, [2, 6]);
    // By this the events of the child find it.
    let mut event = fixture.ucma.event(EventNumber::ESTABLISHED, 0);
    event.uid = accept.uid;
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(*event.id(), child);
}

#[test]
fn a_rejection_carries_its_reason_and_data() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::TCP);
    let child = fixture.child();
    child.reject(b"no").unwrap();
    let request: Reject = fixture.ucma.only(CommandNumber::REJECT);
    assert_eq!(request.reason, RejectReason::new(0));
    assert_eq!(request.private_data_len, 2);
    assert_eq!(request.private_data[..3], *b"no\0");
    child.reject_ece(b"").unwrap();
    let request: Reject = fixture.ucma.only(CommandNumber::REJECT);
    assert_eq!(request.reason, RejectReason::VENDOR_OPTION_NOT_SUPPORTED);
    assert_eq!(request.private_data_len, 0);
}

#[test]
fn the_other_commands_name_their_id() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.establish().unwrap();
    let request: Accept = fixture.ucma.only(CommandNumber::ACCEPT);
    assert_eq!(request, Accept::ready_to_use(FIRST_ID));
    id.disconnect().unwrap();
    let request: Disconnect = fixture.ucma.only(CommandNumber::DISCONNECT);
    assert_eq!(request, Disconnect::new(FIRST_ID));
    for (what, event) in [
        (Notification::CommunicationEstablished, Notify::COMM_EST),
        (Notification::PathMigrated, Notify::PATH_MIG),
    ] {
        id.notify(what).unwrap();
        let request: Notify = fixture.ucma.only(CommandNumber::NOTIFY);
        assert_eq!(request, Notify::new(FIRST_ID, event));
    }
}

/// A command that answers a peer.
type Answer = fn(&IdHandle) -> Result<(), Error>;

const ANSWERS: [Answer; 4] = [
    |id| id.accept(ConnParam::new()),
    |id| id.establish(),
    |id| id.reject(b""),
    |id| id.reject_ece(b""),
];

#[test]
fn an_id_that_waits_for_the_peer_sends_no_answer() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.connect(ConnParam::new()).unwrap();
    fixture.ucma.forget();
    for answer in ANSWERS {
        invalid(answer(&id), "has not been read yet");
    }
    assert!(fixture.sent().is_empty());
    let _response = fixture.event(EventNumber::CONNECT_RESPONSE, 0);
    id.establish().unwrap();
}

#[test]
fn only_answers_of_the_peer_end_the_wait_for_one() {
    let fixture = Fixture::new();
    for (number, answers) in [
        (EventNumber::CONNECT_RESPONSE, true),
        (EventNumber::CONNECT_ERROR, true),
        (EventNumber::ADDR_ERROR, true),
        // Of a neighbour whose link-layer address has changed, whose answer may still come.
        (EventNumber::UNREACHABLE, false),
        (EventNumber::REJECTED, true),
        (EventNumber::ESTABLISHED, true),
        (EventNumber::DISCONNECTED, true),
        (EventNumber::DEVICE_REMOVAL, false),
        (EventNumber::ADDR_CHANGE, false),
        (EventNumber::TIMEWAIT_EXIT, false),
    ] {
        let id = fixture.id(PortSpace::TCP);
        id.connect(ConnParam::new()).unwrap();
        let _event = fixture.event(number, 0);
        assert_eq!(id.reject(b"").is_ok(), answers, "{number:?}");
    }
}

/// `cma_sidr_rep_handler`, if the service's queue key is not the id's.
#[test]
fn a_service_with_another_queue_key_has_answered() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    id.connect(ConnParam::new()).unwrap();
    let mut event = fixture.ucma.event(EventNumber::ADDR_ERROR, -libc::EINVAL);
    let mut reply = UdWire::new_zeroed();
    reply.private_data_len = 5;
    reply.private_data[..5].copy_from_slice(b"hello");
    event.param = EventParam::from_ud(&reply);
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.private_data(), b"hello");
    id.reject(b"").unwrap();
}

#[test]
fn a_message_that_was_not_sent_needs_no_answer() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    fixture.ucma.refuse(CommandNumber::CONNECT, libc::EINVAL);
    errno(id.connect(ConnParam::new()), libc::EINVAL);
    id.reject(b"").unwrap();
    // One of two was sent.
    id.connect(ConnParam::new()).unwrap();
    fixture.ucma.refuse(CommandNumber::CONNECT, libc::EINVAL);
    errno(id.connect(ConnParam::new()), libc::EINVAL);
    invalid(id.reject(b""), "has not been read yet");
}

/// The kernel would reject a request that it has accepted, and crash.
#[test]
fn one_thread_at_a_time_answers() {
    for _ in 0..300 {
        let fixture = Fixture::new();
        let _listener = fixture.id(PortSpace::TCP);
        let child = fixture.child();
        fixture.ucma.forget();
        let (accepted, rejected) = thread::scope(|scope| {
            let rejecting = scope.spawn(|| child.reject(b"").is_ok());
            (
                child.accept(ConnParam::new()).is_ok(),
                rejecting.join().unwrap(),
            )
        });
        let sent = fixture.sent();
        if accepted && rejected {
            assert_eq!(sent, [CommandNumber::REJECT, CommandNumber::ACCEPT]);
        } else {
            assert_eq!(sent.len(), 1, "{sent:?}");
        }
    }
}

#[test]
fn an_accepted_id_waits_for_the_peer() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::TCP);
    let child = fixture.child();
    child.accept(ConnParam::new()).unwrap();
    invalid(child.reject(b""), "has not been read yet");
}

/// The kernel would accept the request of a datagram peer, without a queue pair, and reject that
/// of any other.
#[test]
fn the_id_of_a_connect_request_does_not_establish() {
    for port_space in [PortSpace::TCP, PortSpace::UDP] {
        let fixture = Fixture::new();
        let _listener = fixture.id(port_space);
        let child = fixture.child();
        fixture.ucma.forget();
        invalid(child.establish(), "only the connecting side");
        assert!(fixture.sent().is_empty());
        child.accept(ConnParam::new()).unwrap();
        let request: Accept = fixture.ucma.only(CommandNumber::ACCEPT);
        assert_eq!(request.param.valid, 1);
        let mut event = fixture.ucma.event(EventNumber::ESTABLISHED, 0);
        event.uid = request.uid;
        fixture.ucma.report(&event);
        let _established = fixture.channel.try_next_event().unwrap().unwrap();
        invalid(child.establish(), "only the connecting side");
    }
}

#[test]
fn connection_parameters_of_a_peer_are_read() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    let wire = Wire {
        srq: 1,
        responder_resources: 2,
        initiator_depth: 3,
        flow_control: 1,
        retry_count: 5,
        rnr_retry_count: 6,
        ..Wire::new(0x11).with_private_data(b"data").unwrap()
    };
    let mut event = fixture.ucma.event(EventNumber::CONNECT_RESPONSE, 0);
    event.param = EventParam::from_conn(&wire);
    event.ece.options = 4;
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    let conn = event.conn().unwrap();
    assert_eq!((conn.qp_number, conn.srq), (0x11, true));
    assert_eq!((conn.responder_resources, conn.initiator_depth), (2, 3));
    assert_eq!((conn.retry_count, conn.rnr_retry_count), (5, 6));
    assert!(conn.flow_control);
    assert_eq!(event.private_data(), b"data");
    assert_eq!(event.ece().options, 4);
    assert_eq!(event.ud(), None);
    let plain = fixture.event(EventNumber::CONNECT_RESPONSE, 0);
    let conn = plain.conn().unwrap();
    assert!(!conn.srq && !conn.flow_control);
}

#[test]
fn datagram_parameters_of_a_peer_are_read() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::UDP);
    let mut wire = UdWire::new_zeroed();
    (wire.qp_number, wire.qkey, wire.private_data_len) = (0x12, 0x34, 3);
    wire.ah_attr.destination_lid = 9;
    wire.private_data[..3].copy_from_slice(b"sid");
    let mut event = fixture.ucma.event(EventNumber::ESTABLISHED, 0);
    event.param = EventParam::from_ud(&wire);
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    let service = event.ud().unwrap();
    assert_eq!((service.qp_number, service.qkey), (0x12, 0x34));
    assert_eq!(service.ah_attr, wire.ah_attr);
    assert_eq!(event.private_data(), b"sid");
    assert_eq!(event.conn(), None);
}
