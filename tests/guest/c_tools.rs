//! rdma-core's C tools as peers, in both roles.
//!
//! rxe does not check queue pair numbers, so where no data are sent, this side uses
//! invented numbers; siw gets real queue pairs.

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

/// The number of connections for each tool.
const CONNECTIONS: usize = 100;

/// A hundred connections, one tool after the other: with more than `on_siw` connections
/// in one process, the C tools fail to create their queues on siw.
fn shares(site: &Site, on_siw: usize) -> impl Iterator<Item = usize> + use<> {
    let share = match site.soft {
        Soft::Rxe => CONNECTIONS,
        Soft::Siw => on_siw,
    };
    std::iter::repeat_n(share, CONNECTIONS / share)
}

/// Responder resources and initiator depth, from this side's view.
type Depths = (u8, u8);

/// This side's connection parameters.
const ASKED: Depths = (3, 2);

/// The same, with private data, which the tools ignore.
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

/// The parameters of a connecting tool. iWARP transmits the depths only.
fn check_request(site: &Site, info: &ConnInfo, retries: u8, rnr_retries: u8) {
    assert_eq!(depths(info), (1, 1));
    let (retries, rnr_retries) = match site.soft {
        Soft::Rxe => (retries, rnr_retries),
        Soft::Siw => (0, 0),
    };
    let counts = (info.retry_count, info.rnr_retry_count);
    assert_eq!(counts, (retries, rnr_retries));
    check_flags(site, info);
}

/// The parameters of an accepting tool. siw reports them with the sides exchanged.
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

/// Checks the reply of a tool's server, and this side's queue pair.
fn check_established(site: &Site, connection: &CmConnection<End>, agreed: Depths) {
    let answer = connection.peer().unwrap();
    check_answer(site, &answer, agreed);
    check_no_private_data(site, connection.private_data(), ANSWER_ROOM);
    connection.queue_pair().check_connected_to(answer.qp_number);
}

/// The private data of a tool, which sends none: zeros on rxe.
fn check_no_private_data(site: &Site, data: &[u8], field: usize) {
    let len = match site.soft {
        Soft::Rxe => field,
        Soft::Siw => 0,
    };
    assert_eq!(data, vec![0; len]);
}

/// The space for private data in rxe's requests and replies.
const REQUEST_ROOM: usize = 56;
const ANSWER_ROOM: usize = 196;
