//! Events.

use rdmacm_abi::{EventNumber, EventParam, WriteCmEvent};
use rdmacm_core::{CommandNumber, Error, EventKind, PortSpace, RejectReason};

use crate::script::FIRST_ID;
use crate::{Fixture, errno};

/// Number, kind, name, whether it tells of a failure, whether it brings what the peer
/// says of itself.
const KINDS: [(EventNumber, EventKind, &str, bool, bool); 20] = {
    use EventKind as K;
    use EventNumber as N;
    [
        (
            N::ADDR_RESOLVED,
            K::AddrResolved,
            "ADDR_RESOLVED",
            false,
            false,
        ),
        (N::ADDR_ERROR, K::AddrError, "ADDR_ERROR", true, false),
        (
            N::ROUTE_RESOLVED,
            K::RouteResolved,
            "ROUTE_RESOLVED",
            false,
            false,
        ),
        (N::ROUTE_ERROR, K::RouteError, "ROUTE_ERROR", true, false),
        (
            N::CONNECT_REQUEST,
            K::ConnectRequest,
            "CONNECT_REQUEST",
            false,
            true,
        ),
        (
            N::CONNECT_RESPONSE,
            K::ConnectResponse,
            "CONNECT_RESPONSE",
            false,
            true,
        ),
        (
            N::CONNECT_ERROR,
            K::ConnectError,
            "CONNECT_ERROR",
            true,
            false,
        ),
        (N::UNREACHABLE, K::Unreachable, "UNREACHABLE", true, false),
        (N::REJECTED, K::Rejected, "REJECTED", true, false),
        (N::ESTABLISHED, K::Established, "ESTABLISHED", false, true),
        (
            N::DISCONNECTED,
            K::Disconnected,
            "DISCONNECTED",
            false,
            false,
        ),
        (
            N::DEVICE_REMOVAL,
            K::DeviceRemoval,
            "DEVICE_REMOVAL",
            true,
            false,
        ),
        (
            N::MULTICAST_JOIN,
            K::MulticastJoin,
            "MULTICAST_JOIN",
            false,
            true,
        ),
        (
            N::MULTICAST_ERROR,
            K::MulticastError,
            "MULTICAST_ERROR",
            true,
            false,
        ),
        (N::ADDR_CHANGE, K::AddrChange, "ADDR_CHANGE", false, false),
        (
            N::TIMEWAIT_EXIT,
            K::TimewaitExit,
            "TIMEWAIT_EXIT",
            false,
            false,
        ),
        (
            N::ADDRINFO_RESOLVED,
            K::AddrInfoResolved,
            "ADDRINFO_RESOLVED",
            false,
            false,
        ),
        (
            N::ADDRINFO_ERROR,
            K::AddrInfoError,
            "ADDRINFO_ERROR",
            true,
            false,
        ),
        (N::USER, K::User, "USER", false, false),
        (N::INTERNAL, K::Internal, "INTERNAL", false, false),
    ]
};

#[test]
fn every_event_has_its_kind_and_name() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    for (number, kind, name, fails, brings) in KINDS {
        let event = fixture.event(number, 0);
        assert_eq!(event.kind(), kind);
        assert_eq!(kind.to_string(), name);
        assert_eq!(event.failure().is_some(), fails, "{name}");
        let failure = event.as_failure();
        assert_eq!((failure.kind(), failure.status()), (kind, 0));
        assert_eq!(event.conn().is_some(), brings, "{name}");
        let status = fixture.event(number, -libc::EIO);
        assert_eq!(status.status(), -libc::EIO);
        let failure = status.failure().unwrap();
        assert_eq!((failure.kind(), failure.status()), (kind, -libc::EIO));
        assert_eq!(failure.raw_os_error(), Some(libc::EIO));
        assert!(failure.to_string().starts_with(&format!("{name} EIO")));
    }
    let strange = fixture.event(EventNumber::new(99), 0);
    assert_eq!(strange.kind(), EventKind::Unknown(99));
    assert_eq!(strange.kind().to_string(), "event 99");
}

#[test]
fn every_known_cause_has_a_text() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    for (number, status, words) in [
        (
            EventNumber::ADDR_ERROR,
            libc::ETIMEDOUT,
            "neighbour did not answer",
        ),
        (EventNumber::ADDR_ERROR, libc::ENODEV, "no RDMA device"),
        (EventNumber::ADDR_ERROR, libc::ENETUNREACH, "no route"),
        (
            EventNumber::ADDR_ERROR,
            libc::EHOSTUNREACH,
            "unreachable host",
        ),
        (
            EventNumber::ROUTE_ERROR,
            libc::ETIMEDOUT,
            "administrator did not answer",
        ),
        (EventNumber::ROUTE_ERROR, libc::EINVAL, "knows no path"),
        (
            EventNumber::ADDRINFO_ERROR,
            libc::ENODATA,
            "no such service",
        ),
        (
            EventNumber::ADDRINFO_ERROR,
            libc::ENOENT,
            "the name or the service is unknown",
        ),
        (
            EventNumber::ADDRINFO_ERROR,
            libc::ETIMEDOUT,
            "did not answer in time",
        ),
        (
            EventNumber::ADDRINFO_ERROR,
            libc::EINVAL,
            "the subnet administrator refused to answer, or",
        ),
        (
            EventNumber::ADDRINFO_ERROR,
            libc::EAGAIN,
            "no thread could be started",
        ),
        (
            EventNumber::UNREACHABLE,
            libc::ETIMEDOUT,
            "connection manager did not answer",
        ),
        (EventNumber::REJECTED, libc::ECONNREFUSED, "CRC, markers"),
        (
            EventNumber::REJECTED,
            libc::ECONNRESET,
            "reset the connection",
        ),
        (EventNumber::DEVICE_REMOVAL, 0, "going away"),
        (EventNumber::ADDR_CHANGE, 0, "failed over"),
    ] {
        let failure = fixture.event(number, -status).as_failure();
        assert!(failure.cause().unwrap().contains(words), "{failure}");
        assert!(failure.to_string().contains(words), "{failure}");
    }
    let unknown = fixture.event(EventNumber::REJECTED, -libc::EIO);
    assert_eq!(unknown.failure().unwrap().cause(), None);
    assert_eq!(unknown.failure().unwrap().to_string(), "REJECTED EIO");
}

#[test]
fn a_protocol_code_is_not_an_error_number() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    let rejected = fixture.event(EventNumber::REJECTED, 8).failure().unwrap();
    let reason = rejected.reject_reason().unwrap();
    assert_eq!(reason, RejectReason::INVALID_SERVICE_ID);
    assert_eq!(rejected.raw_os_error(), None);
    assert_eq!(rejected.to_string(), "REJECTED 8: no listener");
    let lost = fixture.event(EventNumber::UNREACHABLE, 8).failure();
    assert_eq!(lost.unwrap().reject_reason(), None);
    let silent = fixture.event(EventNumber::REJECTED, 0).failure().unwrap();
    assert_eq!(silent.to_string(), "REJECTED");
    // A status that is no answer of a datagram service.
    let odd = fixture.event(EventNumber::ADDR_ERROR, 1).failure().unwrap();
    assert_eq!(odd.to_string(), "ADDR_ERROR 1");
}

#[test]
fn unreachable_and_rejected_are_distinguished() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::UDP);
    let failure = |number, status| fixture.event(number, status).failure().unwrap();
    assert!(failure(EventNumber::ROUTE_ERROR, -libc::EINVAL).is_unreachable());
    assert!(failure(EventNumber::UNREACHABLE, 0).is_unreachable());
    assert!(!failure(EventNumber::UNREACHABLE, 1).is_unreachable());
    assert!(!failure(EventNumber::CONNECT_ERROR, -libc::EIO).is_unreachable());
    assert!(!failure(EventNumber::CONNECT_ERROR, -libc::EIO).is_rejected());
    assert!(failure(EventNumber::CONNECT_ERROR, -libc::ETIMEDOUT).is_timeout());
}

#[test]
fn a_user_event_carries_an_argument() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.write_event(-5, 0x1234_5678_9abc).unwrap();
    let request: WriteCmEvent = fixture.ucma.only(CommandNumber::WRITE_CM_EVENT);
    assert_eq!((request.id, request.status()), (FIRST_ID, -5));
    assert_eq!(request.event, EventNumber::USER);
    assert_eq!(request.param.arg(), 0x1234_5678_9abc);
    for number in [EventNumber::USER, EventNumber::INTERNAL] {
        let mut event = fixture.ucma.event(number, 0);
        event.param = EventParam::from_arg(u64::MAX - 1);
        fixture.ucma.report(&event);
        let event = fixture.channel.try_next_event().unwrap().unwrap();
        assert_eq!(event.argument(), Some(u64::MAX - 1));
    }
    let other = fixture.event(EventNumber::ESTABLISHED, 0);
    assert_eq!(other.argument(), None);
}

#[test]
fn a_kernel_without_the_command_is_detected_once() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let number = CommandNumber::WRITE_CM_EVENT;
    // The command, and the question about an id that cannot be.
    fixture.ucma.refuse(number, libc::EINVAL);
    fixture.ucma.refuse(number, libc::EINVAL);
    let unknown = id.write_event(0, 0).unwrap_err();
    assert!(matches!(unknown, Error::Unsupported { .. }), "{unknown}");
    assert!(unknown.to_string().contains("6.18"), "{unknown}");
    assert_eq!(fixture.sent(), [number; 2]);
    fixture.ucma.refuse(number, libc::EINVAL);
    let again = id.write_event(0, 0).unwrap_err();
    assert!(matches!(again, Error::Unsupported { .. }), "{again}");
    assert_eq!(fixture.sent(), [number]);
}

#[test]
fn a_refusal_by_a_kernel_with_the_command_is_final() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let number = CommandNumber::WRITE_CM_EVENT;
    fixture.ucma.refuse(number, libc::EINVAL);
    fixture.ucma.refuse(number, libc::ENOENT);
    errno(id.write_event(0, 0), libc::EINVAL);
    let sent = fixture.ucma.take();
    let about: WriteCmEvent = sent[1].request();
    assert_eq!(about.id, u32::MAX, "an id that no kernel gives");
    fixture.ucma.refuse(number, libc::EACCES);
    errno(id.write_event(0, 0), libc::EACCES);
    assert_eq!(fixture.sent(), [number]);
}
