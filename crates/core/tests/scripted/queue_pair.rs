//! A queue pair that moves with its id.

use std::io;
use std::sync::Mutex;

use rdmacm_abi::{Accept, AccessFlags, Connect, EventNumber, QpState as S, QueryAddrResponse};
use rdmacm_core::{
    CmId, CommandNumber, ConnParam, DepthLimits, Ece, Error, Event, PortSpace, QpAttr, QpAttrMask,
    QpState, QueuePair, Transport,
};
use zerocopy::FromZeros;

use crate::{Fixture, errno, invalid};

const VENDOR: u32 = 0x15b3;
const OWN: Ece = ece(VENDOR, 0x77);
const NONE: Ece = ece(0, 0);

const fn ece(vendor_id: u32, options: u32) -> Ece {
    Ece { vendor_id, options }
}

/// Keeps the states it was moved to and the options it was given.
#[derive(Debug)]
struct Pair {
    transport: Transport,
    ece: Option<Ece>,
    refuses: Option<QpState>,
    moves: Mutex<Vec<(QpAttr, QpAttrMask)>>,
    given: Mutex<Option<Ece>>,
}

impl Pair {
    fn new() -> Self {
        Self {
            transport: Transport::RoCE,
            ece: None,
            refuses: None,
            moves: Mutex::default(),
            given: Mutex::default(),
        }
    }

    fn with_ece() -> Self {
        Self {
            ece: Some(OWN),
            ..Self::new()
        }
    }

    fn refusing(state: QpState) -> Self {
        Self {
            refuses: Some(state),
            ..Self::new()
        }
    }

    fn states(&self) -> Vec<QpState> {
        let moves = self.moves.lock().unwrap();
        moves.iter().map(|(attr, _)| attr.qp_state).collect()
    }

    fn given(&self) -> Option<Ece> {
        *self.given.lock().unwrap()
    }
}

impl QueuePair for Pair {
    fn number(&self) -> u32 {
        0x42
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn depth_limits(&self) -> DepthLimits {
        DepthLimits {
            responder_resources: 16,
            initiator_depth: 8,
        }
    }

    fn has_srq(&self) -> bool {
        true
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        self.moves.lock().unwrap().push((*attr, mask));
        if self.refuses == Some(attr.qp_state) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }

    fn ece(&self) -> io::Result<Option<Ece>> {
        Ok(self.given().or(self.ece))
    }

    fn set_ece(&self, ece: Ece) -> io::Result<()> {
        *self.given.lock().unwrap() = Some(ece);
        Ok(())
    }
}

/// The child of a connect request with these options, of the depths 4 and 20.
fn child(fixture: &Fixture, ece: Ece) -> CmId {
    let mut event = fixture.ucma.event(EventNumber::CONNECT_REQUEST, 0);
    let mut conn = rdmacm_abi::ConnParam::new(1);
    (conn.responder_resources, conn.initiator_depth) = (4, 20);
    event.param = rdmacm_abi::EventParam::from_conn(&conn);
    event.ece = ece;
    fixture.ucma.report(&event);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    event.into_child().unwrap()
}

fn response(fixture: &Fixture, ece: Ece) -> Event {
    let mut event = fixture.ucma.event(EventNumber::CONNECT_RESPONSE, 0);
    event.ece = ece;
    fixture.ucma.report(&event);
    fixture.channel.try_next_event().unwrap().unwrap()
}

#[test]
fn connect_sends_the_queue_pair_and_the_limits_of_its_device() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.with_queue_pair(&Pair::with_ece())
        .connect(ConnParam::new())
        .unwrap();
    let request: Connect = fixture.ucma.only(CommandNumber::CONNECT);
    let param = request.param;
    assert_eq!((param.qp_number, param.srq), (0x42, 1));
    assert_eq!((param.responder_resources, param.initiator_depth), (16, 8));
    assert_eq!(request.ece, OWN);
    let said = ConnParam::new().ece(ece(1, 2));
    id.with_queue_pair(&Pair::new()).connect(said).unwrap();
    let request: Connect = fixture.ucma.only(CommandNumber::CONNECT);
    assert_eq!(request.ece, ece(1, 2), "the queue pair knows of none");
}

#[test]
fn each_state_gets_the_kernels_attributes() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let mut answer = QpAttr::new_zeroed();
    (answer.mask, answer.rq_psn) = (QpAttrMask::STATE | QpAttrMask::PORT, 5);
    fixture.ucma.answer(CommandNumber::INIT_QP_ATTR, &answer);
    let pair = Pair::new();
    id.with_queue_pair(&pair).init().unwrap();
    let moves = pair.moves.lock().unwrap();
    let [(attr, mask)] = &moves[..] else {
        panic!("{moves:?}")
    };
    assert_eq!((attr.qp_state, attr.rq_psn), (QpState::INIT, 5));
    assert_eq!(*mask, answer.mask);
}

#[test]
fn a_datagram_queue_pair_moves_to_rts_without_a_peer() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let pair = Pair::new();
    id.with_queue_pair(&pair).ready_to_send().unwrap();
    assert_eq!(pair.states(), [S::INIT, S::RTR, S::RTS]);
    let masks: Vec<_> = pair.moves.lock().unwrap().iter().map(|one| one.1).collect();
    let packets = QpAttrMask::STATE | QpAttrMask::SQ_PSN;
    assert_eq!(masks[1..], [QpAttrMask::STATE, packets]);
    assert_eq!(fixture.sent(), [CommandNumber::INIT_QP_ATTR]);
    let id = fixture.id(PortSpace::TCP);
    let pair = Pair::new();
    invalid(id.with_queue_pair(&pair).ready_to_send(), "only a datagram");
    assert!(pair.states().is_empty());
}

#[test]
fn a_response_moves_the_queue_pair_to_rts_before_establishing() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let pair = Pair::with_ece();
    id.with_queue_pair(&pair)
        .establish(&response(&fixture, NONE))
        .unwrap();
    assert_eq!(pair.states(), [S::RTR, S::RTS]);
    let asks = CommandNumber::INIT_QP_ATTR;
    assert_eq!(fixture.sent(), [asks, asks, asks, CommandNumber::ACCEPT]);
}

#[test]
fn what_the_request_has_changed_of_init_is_part_of_rtr() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let response = response(&fixture, NONE);
    let mut answer = QpAttr::new_zeroed();
    let late = QpAttrMask::ACCESS_FLAGS | QpAttrMask::PKEY_INDEX;
    answer.mask = QpAttrMask::STATE | QpAttrMask::PORT | late;
    (answer.access_flags, answer.pkey_index) = (AccessFlags::REMOTE_READ, 3);
    fixture.ucma.answer(CommandNumber::INIT_QP_ATTR, &answer);
    let pair = Pair::new();
    id.with_queue_pair(&pair).establish(&response).unwrap();
    let moves = pair.moves.lock().unwrap();
    let (attr, mask) = moves[0];
    assert_eq!(attr.qp_state, S::RTR);
    let changed = (attr.access_flags, attr.pkey_index);
    assert_eq!(changed, (AccessFlags::REMOTE_READ, 3));
    assert!(mask.contains(late));
}

#[test]
fn addresses_on_roce_spare_a_query() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let mut answer = QueryAddrResponse::new_zeroed();
    answer.port_number = 2;
    fixture.ucma.answer(CommandNumber::QUERY, &answer);
    id.addresses().unwrap();
    fixture.ucma.take();
    let moved = |transport| {
        let pair = Pair {
            transport,
            ..Pair::new()
        };
        id.with_queue_pair(&pair).init().unwrap();
        let moved = *pair.moves.lock().unwrap().last().unwrap();
        (moved.0, moved.1, fixture.sent())
    };
    let (attr, mask, sent) = moved(Transport::RoCE);
    assert_eq!(sent, []);
    assert_eq!((attr.qp_state, attr.port_number), (S::INIT, 2));
    let expected =
        QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS;
    assert_eq!(mask, expected);
    for other in [Transport::InfiniBand, Transport::IWarp] {
        assert_eq!(moved(other).2, [CommandNumber::INIT_QP_ATTR]);
    }
}

#[test]
fn ece_of_a_response_is_used_from_the_same_vendor_only() {
    let establish = |answer| {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        let pair = Pair::with_ece();
        let outcome = id
            .with_queue_pair(&pair)
            .establish(&response(&fixture, answer));
        (outcome, pair.given())
    };
    assert_eq!(establish(NONE), (Ok(()), Some(ece(VENDOR, 0))));
    let theirs = ece(VENDOR, 3);
    assert_eq!(establish(theirs), (Ok(()), Some(theirs)));
    let (outcome, given) = establish(ece(VENDOR + 1, 3));
    assert_eq!(given, None);
    errno(outcome, libc::EINVAL);
}

#[test]
fn ece_of_a_request_is_used_from_the_same_vendor_only() {
    let accept = |asked| {
        let fixture = Fixture::new();
        let _listener = fixture.id(PortSpace::TCP);
        let child = child(&fixture, asked);
        let pair = Pair::with_ece();
        child
            .with_queue_pair(&pair)
            .accept(ConnParam::new())
            .unwrap();
        let sent = fixture.ucma.take();
        let request: Accept = sent.last().unwrap().request();
        (pair.given(), request.ece)
    };
    assert_eq!(accept(NONE), (None, NONE));
    let theirs = ece(VENDOR, 3);
    assert_eq!(accept(theirs), (Some(theirs), theirs));
    // The peer is told that none of its vendor's are in use.
    let others = accept(ece(VENDOR + 1, 3));
    assert_eq!(others, (Some(ece(VENDOR, 0)), ece(VENDOR + 1, 0)));
}

#[test]
fn accept_moves_the_queue_pair_before_it_replies() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::TCP);
    let child = child(&fixture, NONE);
    let pair = Pair::new();
    let param = ConnParam::new().ece(ece(1, 2));
    child.with_queue_pair(&pair).accept(param).unwrap();
    assert_eq!(pair.states(), [S::INIT, S::RTR, S::RTS]);
    let (last, _) = *pair.moves.lock().unwrap().last().unwrap();
    assert_eq!((last.max_destination_rd_atomic, last.max_rd_atomic), (4, 8));
    let sent = fixture.ucma.take();
    let request: Accept = sent.last().unwrap().request();
    assert_eq!((request.param.qp_number, request.ece), (0x42, ece(1, 2)));
}

#[test]
fn a_failure_rejects_the_peer() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::TCP);
    let child = child(&fixture, NONE);
    let pair = Pair::refusing(S::RTR);
    let error = child
        .with_queue_pair(&pair)
        .accept(ConnParam::new())
        .unwrap_err();
    assert!(matches!(error, Error::QueuePair { state: S::RTR, .. }));
    assert_eq!(pair.states(), [S::INIT, S::RTR, S::ERR]);
    assert_eq!(fixture.sent().last(), Some(&CommandNumber::REJECT));
}

#[test]
fn a_call_that_the_library_refuses_changes_nothing() {
    let fixture = Fixture::new();
    let _listener = fixture.id(PortSpace::TCP);
    let child = child(&fixture, NONE);
    let pair = Pair::new();
    let param = ConnParam::new().retry_count(9);
    invalid(child.with_queue_pair(&pair).accept(param), "at most 7");
    let response = response(&fixture, NONE);
    let established = child.with_queue_pair(&pair).establish(&response);
    invalid(established, "only the connecting side");
    assert!(pair.states().is_empty() && fixture.sent().is_empty());
}

#[test]
fn disconnect_moves_the_queue_pair_to_error_first() {
    for (transport, state) in [(Transport::RoCE, S::ERR), (Transport::IWarp, S::SQD)] {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        let pair = Pair {
            transport,
            ..Pair::new()
        };
        id.with_queue_pair(&pair).disconnect().unwrap();
        assert_eq!(pair.states(), [state]);
        assert_eq!(pair.moves.lock().unwrap()[0].1, QpAttrMask::STATE);
        assert_eq!(fixture.sent(), [CommandNumber::DISCONNECT]);
    }
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let pair = Pair::refusing(S::ERR);
    errno(id.with_queue_pair(&pair).disconnect(), libc::EIO);
    assert!(fixture.sent().is_empty(), "nothing was sent");
    errno(id.with_queue_pair(&pair).move_to_error(), libc::EIO);
}

#[test]
fn a_queue_pair_behind_a_pointer_is_itself() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let pair = std::sync::Arc::new(Pair::with_ece());
    id.with_queue_pair(&pair).connect(ConnParam::new()).unwrap();
    let request: Connect = fixture.ucma.only(CommandNumber::CONNECT);
    let param = request.param;
    assert_eq!((param.qp_number, param.srq, request.ece), (0x42, 1, OWN));
    id.with_queue_pair(&pair)
        .establish(&response(&fixture, NONE))
        .unwrap();
    assert_eq!(pair.given(), Some(ece(VENDOR, 0)));
    assert_eq!(pair.states().len(), 2);
}

/// It says no more than it has to.
#[derive(Debug)]
struct Plain;

impl QueuePair for Plain {
    fn number(&self) -> u32 {
        1
    }

    fn transport(&self) -> Transport {
        Transport::RoCE
    }

    fn depth_limits(&self) -> DepthLimits {
        DepthLimits {
            responder_resources: 1,
            initiator_depth: 1,
        }
    }

    fn modify(&self, _: &QpAttr, _: QpAttrMask) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_queue_pair_has_no_srq_and_no_ece_by_default() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let param = ConnParam::new().ece(ece(1, 2));
    id.with_queue_pair(&Plain).connect(param).unwrap();
    let request: Connect = fixture.ucma.only(CommandNumber::CONNECT);
    assert_eq!((request.param.srq, request.ece), (0, ece(1, 2)));
    let refused = Plain.set_ece(OWN).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
}
