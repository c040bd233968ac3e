//! The C tools of rdma-core on the other side of the connection, in both roles.
//!
//! Where no data move, rxe believes any queue pair number, so there our ends are made
//! up; siw gets real queue pairs.

use our_side::End;
use rdmacm::{CmConnection, Connector, Node};
use rdmacm_core::{CmAddr, ConnInfo, ConnParam, IdHandle};
use rdmacm_tests::{PATIENCE, Site, Soft};

pub(crate) mod cmtime;
pub(crate) mod listening;
pub(crate) mod mckey;
pub(crate) mod one_message;
mod our_side;
pub(crate) mod rping;
pub(crate) mod tool;
pub(crate) mod ucmatose;
pub(crate) mod udaddy;

pub(crate) use tool::installed;

/// How many connections each tool makes or takes.
const CONNECTIONS: usize = 100;

/// A hundred connections, by one tool after the other: with more than `on_siw`
/// to a process, the C tools cannot make their queues on siw, whoever the peer is.
fn shares(site: &Site, on_siw: usize) -> impl Iterator<Item = usize> + use<> {
    let share = match site.soft {
        Soft::Rxe => CONNECTIONS,
        Soft::Siw => on_siw,
    };
    std::iter::repeat_n(share, CONNECTIONS / share)
}

/// Responder resources and initiator depth, as this side sees them.
type Depths = (u8, u8);

/// What we ask for when we connect.
const ASKED: Depths = (3, 2);

/// The same, with words that the tools overlook.
fn asking() -> ConnParam {
    let (responder_resources, initiator_depth) = ASKED;
    let param = ConnParam::new().responder_resources(responder_resources);
    let param = param.initiator_depth(initiator_depth);
    param.private_data(b"hello, version 1").unwrap()
}

/// Connects to a tool's server, which listens.
fn connect_to(site: &Site, node: &Node, address: CmAddr) -> CmConnection<End> {
    let connector = Connector::new(address).with_node(node).param(asking());
    let connector = connector.deadline(PATIENCE);
    let make = |_: &IdHandle| Ok(End::new(site));
    connector.connect_with(make).unwrap()
}

/// What a C tool asks for when it connects. iWARP transmits the depths alone.
fn check_request(site: &Site, info: &ConnInfo, retries: u8, rnr_retries: u8) {
    assert_eq!(depths(info), (1, 1));
    let (retries, rnr_retries) = match site.soft {
        Soft::Rxe => (retries, rnr_retries),
        Soft::Siw => (0, 0),
    };
    let said = (info.retry_count, info.rnr_retry_count);
    assert_eq!(said, (retries, rnr_retries));
    check_flags(site, info);
}

/// What a C tool agrees to. siw tells it with the sides changed.
fn check_answer(site: &Site, info: &ConnInfo, agreed: Depths) {
    let agreed = match site.soft {
        Soft::Rxe => agreed,
        Soft::Siw => (agreed.1, agreed.0),
    };
    assert_eq!(depths(info), agreed);
    check_flags(site, info);
}

fn depths(info: &ConnInfo) -> Depths {
    (info.responder_resources, info.initiator_depth)
}

fn check_flags(site: &Site, info: &ConnInfo) {
    assert_eq!(info.qp_number == 0, site.soft == Soft::Siw);
    assert!(!info.srq && !info.flow_control, "{info:?}");
}

/// What a C tool's server answered, and where it led our end.
fn check_established(site: &Site, connection: &CmConnection<End>, agreed: Depths) {
    let answer = connection.peer().unwrap();
    check_answer(site, &answer, agreed);
    check_no_private_data(site, connection.private_data(), ANSWER_ROOM);
    connection.queue_pair().check_connected_to(answer.qp_number);
}

/// The private data of a tool, which sends none: on rxe a field of zeros.
fn check_no_private_data(site: &Site, data: &[u8], field: usize) {
    let len = match site.soft {
        Soft::Rxe => field,
        Soft::Siw => 0,
    };
    assert_eq!(data, vec![0; len]);
}

/// The room for private data in a request and its answer on rxe.
const REQUEST_ROOM: usize = 56;
const ANSWER_ROOM: usize = 196;
