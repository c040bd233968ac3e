//! Options of an id, and what its queue pair needs.

use std::time::Duration;

use rdmacm_abi::{
    IbOption, IdOption, InitQpAttr, OptionLevel, PathRecordData, ResolveRoute, SetOption,
};
use rdmacm_core::{
    CommandNumber, Gid, IdHandle, PathData, PathFlags, PathMtu, PathRecord, PortSpace, QpAttr,
    QpState, Result,
};
use zerocopy::{FromBytes, FromZeros};

use crate::script::FIRST_ID;
use crate::{Fixture, invalid};

/// What an option was set to, and how it was named.
fn option(call: impl FnOnce(&IdHandle) -> Result<()>) -> (SetOption, Vec<u8>) {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    call(&id).unwrap();
    let commands = fixture.ucma.take();
    assert_eq!(commands[0].number, CommandNumber::SET_OPTION);
    (commands[0].request(), commands[0].value.clone().unwrap())
}

#[track_caller]
fn check(name: IdOption, value: &[u8], call: impl FnOnce(&IdHandle) -> Result<()>) {
    let (request, set) = option(call);
    let named = (request.id, request.level, request.name);
    assert_eq!(named, (FIRST_ID, OptionLevel::ID, name.number()));
    assert_eq!(set, value);
}

#[test]
fn each_option_has_its_name_and_value() {
    let on = 1_i32.to_ne_bytes();
    check(IdOption::TOS, &[0x2e], |id| id.set_tos(0x2e));
    check(IdOption::REUSEADDR, &on, |id| id.set_reuse_addr(true));
    check(IdOption::REUSEADDR, &[0; 4], |id| id.set_reuse_addr(false));
    check(IdOption::AFONLY, &on, |id| id.set_af_only(true));
    check(IdOption::AFONLY, &[0; 4], |id| id.set_af_only(false));
    check(IdOption::ACK_TIMEOUT, &[31], |id| id.set_ack_timeout(31));
}

#[test]
fn an_exponent_has_five_bits() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    invalid(id.set_ack_timeout(32), "5 bits");
    assert!(fixture.sent().is_empty());
}

pub(crate) fn path(flags: PathFlags, dlid: u16) -> PathData {
    let record = PathRecord {
        service_id: 0,
        dgid: Gid([1; 16]),
        sgid: Gid([2; 16]),
        dlid,
        slid: 1,
        flow_label: 0,
        hop_limit: 0,
        traffic_class: 0,
        reversible: true,
        numb_path: 1,
        pkey: 0xffff,
        qos_class: 0,
        sl: 0,
        mtu_selector: 2,
        mtu: PathMtu::new(4),
        rate_selector: 2,
        rate: 3,
        packet_life_time_selector: 2,
        packet_life_time: 18,
        preference: 0,
    };
    PathData { flags, record }
}

#[test]
fn the_first_usable_path_is_set() {
    let chosen = |paths: &[PathData]| {
        let (request, value) = option(|id| id.set_ib_path(paths));
        assert_eq!(request.level, OptionLevel::IB);
        assert_eq!(request.name, IbOption::PATH.number());
        let path = PathRecordData::read_from_bytes(&value).unwrap();
        path.record.destination_lid.get()
    };
    let (usable, not) = (PathData::USABLE, PathFlags::empty());
    assert_eq!(chosen(&[path(not, 1), path(usable, 2), path(usable, 3)]), 2);
    // The kernel says what is wrong with it.
    assert_eq!(chosen(&[path(not, 1), path(not, 2)]), 1);
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    invalid(id.set_ib_path(&[]), "no path");
    let mut wide = path(usable, 1);
    wide.record.sl = 0x10;
    invalid(id.set_ib_path(&[wide]), "more bits");
}

#[test]
fn init_qp_attr_returns_the_attributes_for_the_requested_state() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let mut answer = QpAttr::new_zeroed();
    (answer.qp_state, answer.rq_psn) = (QpState::INIT, 77);
    fixture.ucma.answer(CommandNumber::INIT_QP_ATTR, &answer);
    let attr = id.init_qp_attr(QpState::RTR).unwrap();
    assert_eq!((attr.qp_state, attr.rq_psn), (QpState::RTR, 77));
    let request: InitQpAttr = fixture.ucma.only(CommandNumber::INIT_QP_ATTR);
    assert_eq!((request.id, request.qp_state), (FIRST_ID, QpState::RTR));
}

#[test]
fn a_route_timeout_is_in_milliseconds() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    invalid(id.resolve_route(Duration::ZERO), "timeout of 0");
    id.resolve_route(Duration::from_micros(1500)).unwrap();
    let request: ResolveRoute = fixture.ucma.only(CommandNumber::RESOLVE_ROUTE);
    assert_eq!(request, ResolveRoute::new(FIRST_ID, 2));
}
