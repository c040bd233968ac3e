//! Moving queue pairs between states with the caller's attributes.

use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_tests::Site;
use rdmacm_tests::modify_qp::{ACKNOWLEDGED, INIT, RTR, RTS, attributes};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{CommandNumber, Error, QueuePair};

fn refused(queue_pair: &QueuePair, attr: &QpAttr, mask: QpAttrMask) -> (i32, String) {
    let Err(Error::Command(error)) = queue_pair.modify(attr, mask) else {
        panic!("{attr:?} under {mask:?} is taken");
    };
    assert_eq!(error.command, CommandNumber::MODIFY_QP);
    (error.errno, error.to_string())
}

#[case(needs(ModifyQp))]
fn connected_services_reach_rts(site: &Site) {
    let context = site.verbs();
    let reliable = QueuePair::options(QpType::RC).create(&context).unwrap();
    let steps = [
        (QpState::INIT, INIT),
        (QpState::RTR, RTR),
        (QpState::RTS, RTS),
    ];
    for (state, mask) in steps {
        let attr = attributes(site, reliable.number(), state);
        reliable.modify(&attr, mask).unwrap();
        assert_eq!(reliable.state(), Ok(Some(state)));
    }
    let requested = attributes(site, reliable.number(), QpState::RTS);
    let reported = reliable.query().unwrap();
    assert_eq!(reported.path_mtu, requested.path_mtu);
    assert_eq!(reported.destination_qp_number, reliable.number());
    assert_eq!(
        (reported.rq_psn, reported.sq_psn),
        (requested.rq_psn, requested.sq_psn)
    );
    assert_eq!(
        (reported.timeout, reported.retry_count, reported.rnr_retry),
        (16, 6, 3)
    );
    assert_eq!((reported.port_number, reported.min_rnr_timer), (1, 12));
    assert!(reported.access_flags.contains(requested.access_flags));
    let (theirs, ours) = (reported.ah_attr.grh, requested.ah_attr.grh);
    assert_eq!(theirs.destination_gid, ours.destination_gid);
    assert_eq!(theirs.source_gid_index, ours.source_gid_index);

    let unreliable = QueuePair::options(QpType::UC).create(&context).unwrap();
    for (state, mask) in steps {
        let attr = attributes(site, unreliable.number(), state);
        unreliable.modify(&attr, mask - ACKNOWLEDGED).unwrap();
    }
    assert_eq!(unreliable.state(), Ok(Some(QpState::RTS)));
}

#[case(needs(ModifyQp))]
fn a_datagram_service_reaches_rts(site: &Site) {
    let options = QueuePair::options(QpType::UD);
    let queue_pair = options.create(&site.verbs()).unwrap();
    let init = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY;
    for (state, mask) in [
        (QpState::INIT, init),
        (QpState::RTR, QpAttrMask::STATE),
        (QpState::RTS, QpAttrMask::STATE | QpAttrMask::SQ_PSN),
    ] {
        let attr = attributes(site, queue_pair.number(), state);
        queue_pair.modify(&attr, mask).unwrap();
        assert_eq!(queue_pair.state(), Ok(Some(state)));
    }
    assert_eq!(queue_pair.query().unwrap().qkey, 0x0123_4567);
}

#[case(needs(ModifyQp))]
fn a_state_that_is_skipped_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, queue_pair.number(), QpState::RTS);
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

#[case(needs(ModifyQp))]
fn an_attribute_that_is_missing_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, queue_pair.number(), QpState::INIT);
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

#[case(needs(ModifyQp))]
fn a_nonexistent_port_is_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let mut attr = attributes(site, queue_pair.number(), QpState::INIT);
    attr.port_number = 2;
    let (errno, words) = refused(&queue_pair, &attr, INIT);
    assert_eq!(errno, libc::EINVAL);
    assert!(words.contains("out of range"), "{words}");
}

#[case(needs(ModifyQp))]
fn unknown_attributes_are_refused(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, queue_pair.number(), QpState::INIT);
    let unknown = QpAttrMask::from_bits_retain(1 << 30);
    let (errno, words) = refused(&queue_pair, &attr, INIT | unknown);
    assert_eq!(errno, libc::EOPNOTSUPP);
    assert!(words.contains("does not support all of these"), "{words}");
}

#[case(needs(ModifyQp))]
fn an_invalid_state_is_refused_before_the_kernel(site: &Site) {
    let queue_pair = site.queue_pair();
    let mut attr = attributes(site, queue_pair.number(), QpState::new(0x101));
    let error = queue_pair.modify(&attr, INIT).unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    // The value fits in a byte, so the kernel refuses it.
    attr.qp_state = QpState::new(7);
    assert_eq!(refused(&queue_pair, &attr, INIT).0, libc::EINVAL);
    assert_eq!(queue_pair.state(), Ok(Some(QpState::RESET)));
}

#[case(needs(ModifyQp))]
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
        let attr = attributes(site, queue_pair.number(), state);
        queue_pair.modify(&attr, mask).unwrap();
        assert_eq!(queue_pair.state(), Ok(Some(state)));
    }
}

#[case(needs(ModifyQp))]
fn an_error_number_reaches_the_connecting_caller(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = attributes(site, queue_pair.number(), QpState::RTS);
    let connector: &dyn rdmacm_core::QueuePair = &queue_pair;
    let error = connector.modify(&attr, RTS).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    let attr = attributes(site, queue_pair.number(), QpState::INIT);
    connector.modify(&attr, INIT).unwrap();
    assert_eq!(queue_pair.state(), Ok(Some(QpState::INIT)));
}
