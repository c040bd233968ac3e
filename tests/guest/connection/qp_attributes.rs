//! The queue pair attributes in each state of an id.

use rdmacm_core::{AccessFlags, ConnParam, IdHandle, PortSpace, QpAttrMask, QpState};
use rdmacm_tests::{Site, Soft, expect};
use rdmacm_tests_macros::case;

// iWARP has no datagrams, and TCP negotiates the rest.
const ALL: [QpState; 3] = [QpState::INIT, QpState::RTR, QpState::RTS];

const INIT: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::ACCESS_FLAGS)
    .union(QpAttrMask::PORT);
const ROCE_INIT: QpAttrMask = INIT.union(QpAttrMask::PKEY_INDEX);
const RTR: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::AV)
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::RQ_PSN)
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
    .union(QpAttrMask::DEST_QPN);
const RTS: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC)
    .union(QpAttrMask::SQ_PSN);

fn init(site: &Site) -> QpAttrMask {
    match site.soft {
        Soft::Rxe => ROCE_INIT,
        Soft::Siw => INIT,
    }
}

fn masks(id: &IdHandle) -> [QpAttrMask; 3] {
    ALL.map(|state| {
        let attr = id.init_qp_attr(state).unwrap();
        assert_eq!(attr.qp_state, state);
        attr.mask
    })
}

/// The masks of a connected id.
fn all(site: &Site) -> [QpAttrMask; 3] {
    match site.soft {
        Soft::Rxe => [ROCE_INIT, RTR, RTS],
        Soft::Siw => [INIT, INIT, QpAttrMask::PORT],
    }
}

fn access(id: &IdHandle) -> AccessFlags {
    id.init_qp_attr(QpState::INIT).unwrap().access_flags
}

#[case]
fn an_unbound_id_has_none(site: &Site) {
    let (_channel, id) = site.id();
    let error = id.init_qp_attr(QpState::INIT).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(
        error.to_string().contains("attached to no device"),
        "{error}"
    );
}

#[case]
fn before_a_request_only_init_has_attributes(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let channel = site.channel();
    let resolved = site.resolved(&channel, listener.address());
    assert_eq!(masks(&resolved), [init(site); 3]);
    resolved.resolve_route(rdmacm_tests::PATIENCE).unwrap();
    expect(&channel, rdmacm_core::EventKind::RouteResolved);
    assert_eq!(masks(&resolved), [init(site); 3]);
    assert_eq!(access(&resolved), AccessFlags::empty());
}

#[case]
fn a_requesting_id_has_no_rtr_attributes(site: &Site) {
    let asked = site.pending_request();
    let id = &asked.client.id;
    match site.soft {
        Soft::Rxe => {
            assert_eq!(id.init_qp_attr(QpState::INIT).unwrap().mask, ROCE_INIT);
            for state in [QpState::RTR, QpState::RTS] {
                let error = id.init_qp_attr(state).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
                assert!(
                    error.to_string().contains("too early for this state"),
                    "{error}"
                );
            }
        }
        Soft::Siw => assert_eq!(masks(id), all(site)),
    }
}

#[case(covers(INIT_QP_ATTR))]
fn a_requested_id_has_all_attributes(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    let id = &pair.server.id;
    assert_eq!(masks(id), all(site));
    let most = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    assert!(access(id).contains(most));
    pair.accept(&ConnParam::new());
    assert_eq!(masks(id), all(site));
}

#[case]
fn an_answered_id_has_all_attributes(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    pair.establish(site);
    for side in [&pair.client, &pair.server] {
        assert_eq!(masks(&side.id), all(site));
    }
    pair.disconnect_both();
}

#[case(needs(Datagrams))]
fn they_contain_the_peers_parameters(site: &Site) {
    let param = ConnParam::new().responder_resources(2).initiator_depth(4);
    let param = param.retry_count(5).rnr_retry_count(3);
    let pair = site.pending_request_with(&param).into_pair(site);
    let [_, rtr, rts] = ALL.map(|state| pair.server.id.init_qp_attr(state).unwrap());
    assert_eq!(rtr.destination_qp_number, pair.client.queue_pair.number());
    assert_eq!((rtr.max_destination_rd_atomic, rts.max_rd_atomic), (4, 2));
    assert_eq!((rts.retry_count, rts.rnr_retry), (5, 3));
    assert_eq!((rtr.ah_attr.is_global, rtr.ah_attr.port_number), (1, 1));
    let gid = pair.client.id.gids().unwrap().source;
    assert_eq!(rtr.ah_attr.grh.destination_gid, gid.0);
}

#[case]
fn without_responder_resources_remote_reads_are_off(site: &Site) {
    let param = ConnParam::new().responder_resources(0).initiator_depth(0);
    let pair = site.pending_request_with(&param).into_pair(site);
    let access = access(&pair.server.id);
    assert!(access.contains(AccessFlags::REMOTE_WRITE));
    let reads = access.contains(AccessFlags::REMOTE_READ);
    assert_eq!(reads, site.soft == Soft::Siw);
}

#[case(needs(Datagrams))]
fn a_datagram_id_has_a_qkey(site: &Site) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.bind(site.v4(0)).unwrap();
    let with_key = QpAttrMask::STATE
        .union(QpAttrMask::PKEY_INDEX)
        .union(QpAttrMask::PORT)
        .union(QpAttrMask::QKEY);
    assert_eq!(masks(&id)[0], with_key);
    assert_eq!(id.init_qp_attr(QpState::INIT).unwrap().qkey, 0x0123_4567);
}
