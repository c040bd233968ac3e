//! Queue pairs from state to state, with attributes made by hand.

use rdmacm_core::{AccessFlags, PathMtu, QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_tests::Site;
use rdmacm_verbs::{CommandNumber, Error, QueuePair};
use zerocopy::FromZeros;

crate::cases!("verbs::states":
    connected_services_reach_rts,
    a_datagram_service_reaches_rts,
    a_state_that_is_skipped_is_refused,
    an_attribute_that_is_missing_is_refused,
    a_port_that_is_not_there_is_refused,
    attributes_nobody_knows_are_refused,
    what_is_no_state_is_refused_before_the_kernel,
    from_the_error_state_back_to_init,
    an_error_number_reaches_whoever_connects,
);

const INIT: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::PKEY_INDEX)
    .union(QpAttrMask::PORT)
    .union(QpAttrMask::ACCESS_FLAGS);
const RTR: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::AV)
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN)
    .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
    .union(QpAttrMask::MIN_RNR_TIMER);
const RTS: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::SQ_PSN)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

/// Attributes that lead a queue pair anywhere, to itself as its peer.
fn attributes(site: &Site, queue_pair: &QueuePair, state: QpState) -> QpAttr {
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = state;
    attr.port_number = 1;
    attr.access_flags = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    attr.path_mtu = PathMtu::B1024;
    attr.destination_qp_number = queue_pair.number();
    (attr.rq_psn, attr.sq_psn) = (0x1234, 0x4321);
    (attr.max_rd_atomic, attr.max_destination_rd_atomic) = (3, 5);
    (attr.timeout, attr.retry_count, attr.rnr_retry) = (14, 6, 7);
    attr.min_rnr_timer = 12;
    attr.qkey = 0x0123_4567;
    attr.ah_attr.port_number = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.destination_gid = site.v4.to_ipv6_mapped().octets();
    attr.ah_attr.grh.source_gid_index = gid_index(site);
    attr.ah_attr.grh.hop_limit = 64;
    attr
}

/// Where the device's IPv4 address stands in its port's GID table.
fn gid_index(site: &Site) -> u8 {
    let gid = site.v4.to_ipv6_mapped();
    let groups = gid.segments().map(|group| format!("{group:04x}")).join(":");
    let index = (0..=u8::MAX).find(|index| {
        let path = format!("/sys/class/infiniband/{}/ports/1/gids/{index}", site.device);
        std::fs::read_to_string(path).is_ok_and(|line| line.trim() == groups)
    });
    index.unwrap()
}

fn refused(queue_pair: &QueuePair, attr: &QpAttr, mask: QpAttrMask) -> (i32, String) {
    let Err(Error::Command(error)) = queue_pair.modify(attr, mask) else {
        panic!("{attr:?} under {mask:?} is taken");
    };
    assert_eq!(error.command, CommandNumber::MODIFY_QP);
    (error.errno, error.to_string())
}

fn connected_services_reach_rts(site: &Site) {
    let context = site.verbs();
    let reliable = QueuePair::options(QpType::RC).create(&context).unwrap();
    let steps = [
        (QpState::INIT, INIT),
        (QpState::RTR, RTR),
        (QpState::RTS, RTS),
    ];
    for (state, mask) in steps {
        let attr = attributes(site, &reliable, state);
        reliable.modify(&attr, mask).unwrap();
        assert_eq!(reliable.state(), Ok(Some(state)));
    }
    let asked = attributes(site, &reliable, QpState::RTS);
    let told = reliable.query().unwrap();
    assert_eq!(told.path_mtu, asked.path_mtu);
    assert_eq!(told.destination_qp_number, reliable.number());
    assert_eq!((told.rq_psn, told.sq_psn), (asked.rq_psn, asked.sq_psn));
    assert_eq!((told.timeout, told.retry_count, told.rnr_retry), (14, 6, 7));
    assert_eq!((told.port_number, told.min_rnr_timer), (1, 12));
    assert!(told.access_flags.contains(asked.access_flags));
    let (theirs, ours) = (told.ah_attr.grh, asked.ah_attr.grh);
    assert_eq!(theirs.destination_gid, ours.destination_gid);
    assert_eq!(theirs.source_gid_index, ours.source_gid_index);

    let unreliable = QueuePair::options(QpType::UC).create(&context).unwrap();
    let acknowledged = QpAttrMask::MAX_DEST_RD_ATOMIC
        | QpAttrMask::MIN_RNR_TIMER
        | QpAttrMask::TIMEOUT
        | QpAttrMask::RETRY_CNT
        | QpAttrMask::RNR_RETRY
        | QpAttrMask::MAX_QP_RD_ATOMIC;
    for (state, mask) in steps {
        let attr = attributes(site, &unreliable, state);
        unreliable.modify(&attr, mask - acknowledged).unwrap();
    }
    assert_eq!(unreliable.state(), Ok(Some(QpState::RTS)));
}

fn a_datagram_service_reaches_rts(site: &Site) {
    let options = QueuePair::options(QpType::UD);
    let queue_pair = options.create(&site.verbs()).unwrap();
    let init = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY;
    for (state, mask) in [
        (QpState::INIT, init),
        (QpState::RTR, QpAttrMask::STATE),
        (QpState::RTS, QpAttrMask::STATE | QpAttrMask::SQ_PSN),
    ] {
        let attr = attributes(site, &queue_pair, state);
        queue_pair.modify(&attr, mask).unwrap();
        assert_eq!(queue_pair.state(), Ok(Some(state)));
    }
    assert_eq!(queue_pair.query().unwrap().qkey, 0x0123_4567);
}

fn a_state_that_is_skipped_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, &queue_pair, QpState::RTS);
    let (errno, words) = refused(&queue_pair, &attr, RTS);
    assert_eq!(errno, libc::EINVAL);
    let begin = format!(
        "move queue pair {:#x} to RTS (STATE | ",
        queue_pair.number()
    );
    assert!(words.starts_with(&begin), "{words}");
    assert!(words.contains("its state does not allow this"), "{words}");
    assert_eq!(queue_pair.state(), Ok(Some(QpState::RESET)));
}

fn an_attribute_that_is_missing_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, &queue_pair, QpState::INIT);
    for one in [
        QpAttrMask::PKEY_INDEX,
        QpAttrMask::PORT,
        QpAttrMask::ACCESS_FLAGS,
    ] {
        let (errno, _) = refused(&queue_pair, &attr, INIT - one);
        assert_eq!(errno, libc::EINVAL);
    }
    let (errno, _) = refused(&queue_pair, &attr, INIT | QpAttrMask::SQ_PSN);
    assert_eq!(errno, libc::EINVAL);
    queue_pair.modify(&attr, INIT).unwrap();
}

fn a_port_that_is_not_there_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let mut attr = attributes(site, &queue_pair, QpState::INIT);
    attr.port_number = 2;
    let (errno, words) = refused(&queue_pair, &attr, INIT);
    assert_eq!(errno, libc::EINVAL);
    assert!(words.contains("out of range"), "{words}");
}

fn attributes_nobody_knows_are_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, &queue_pair, QpState::INIT);
    let unknown = QpAttrMask::from_bits_retain(1 << 30);
    let (errno, words) = refused(&queue_pair, &attr, INIT | unknown);
    assert_eq!(errno, libc::EOPNOTSUPP);
    assert!(words.contains("does not know all of these"), "{words}");
}

fn what_is_no_state_is_refused_before_the_kernel(site: &Site) {
    let queue_pair = site.queue_pair();
    let mut attr = attributes(site, &queue_pair, QpState::new(0x101));
    let error = queue_pair.modify(&attr, INIT).unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    // This one fits in a byte and is the kernel's to refuse.
    attr.qp_state = QpState::new(7);
    assert_eq!(refused(&queue_pair, &attr, INIT).0, libc::EINVAL);
    assert_eq!(queue_pair.state(), Ok(Some(QpState::RESET)));
}

fn from_the_error_state_back_to_init(site: &Site) {
    let queue_pair = site.queue_pair();
    let steps = [
        (QpState::INIT, INIT),
        (QpState::RTR, RTR),
        (QpState::ERR, QpAttrMask::STATE),
        (QpState::RESET, QpAttrMask::STATE),
        (QpState::INIT, INIT),
    ];
    for (state, mask) in steps {
        let attr = attributes(site, &queue_pair, state);
        queue_pair.modify(&attr, mask).unwrap();
        assert_eq!(queue_pair.state(), Ok(Some(state)));
    }
}

fn an_error_number_reaches_whoever_connects(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, &queue_pair, QpState::RTS);
    let connector: &dyn rdmacm_core::QueuePair = &queue_pair;
    let error = connector.modify(&attr, RTS).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    let attr = attributes(site, &queue_pair, QpState::INIT);
    connector.modify(&attr, INIT).unwrap();
    assert_eq!(queue_pair.state(), Ok(Some(QpState::INIT)));
}
