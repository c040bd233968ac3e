//! Creating objects on a device: sizes, types and refusals.

use std::collections::BTreeSet;

use rdmacm_core::{DepthLimits, QpAttrMask, QpState, QpType, Transport};
use rdmacm_tests::{Site, Soft};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{CommandNumber, Error, Operation, QpCaps, QueuePair};

#[case]
fn a_completion_queue_has_the_requested_capacity(site: &Site) {
    let context = site.verbs();
    for entries in [1, 7, 100] {
        let queue = context.create_completion_queue(entries).unwrap();
        assert!(queue.entries() >= entries);
        assert_eq!(queue.context().device_name(), site.device);
    }
}

#[case]
fn completion_queues_have_limits(site: &Site) {
    let context = site.verbs();
    for entries in [0, context.limits().max_cqe + 1, u32::MAX] {
        let error = context.create_completion_queue(entries).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        let words = error.to_string();
        let begin = format!("create a completion queue of {entries} (CREATE_CQ): EINVAL: it must");
        assert!(words.starts_with(&begin), "{words}");
    }
}

#[case]
fn a_queue_pair_has_the_requested_capacities(site: &Site) {
    let caps = QpCaps {
        max_send_wr: 20,
        max_recv_wr: 30,
        max_send_sge: 2,
        max_recv_sge: 3,
        max_inline_data: 32,
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    let queue_pair = options.create(&site.verbs()).unwrap();
    let granted = queue_pair.caps();
    assert!(granted.max_send_wr >= 20 && granted.max_recv_wr >= 30);
    assert!(granted.max_send_sge >= 2 && granted.max_recv_sge >= 3);
    assert!(granted.max_inline_data >= 32);
    assert!(queue_pair.send_cq().entries() >= 20);
    assert!(queue_pair.recv_cq().entries() >= 30);
    assert_eq!(queue_pair.qp_type(), QpType::RC);
}

#[case]
fn objects_can_be_shared(site: &Site) {
    let context = site.verbs();
    let domain = context.create_protection_domain().unwrap();
    let queue = context.create_completion_queue(64).unwrap();
    let options = QueuePair::options(QpType::RC)
        .protection_domain(&domain)
        .send_cq(&queue)
        .recv_cq(&queue)
        .signal_all(true);
    let pairs = [(); 3].map(|()| options.create(&context).unwrap());
    let numbers: BTreeSet<_> = pairs.iter().map(QueuePair::number).collect();
    assert_eq!(numbers.len(), 3);
}

#[case]
fn objects_of_another_context_are_refused(site: &Site) {
    let (one, other) = (site.verbs(), site.verbs());
    let domain = other.create_protection_domain().unwrap();
    let queue = other.create_completion_queue(1).unwrap();
    let options = || QueuePair::options(QpType::RC);
    for options in [
        options().protection_domain(&domain),
        options().send_cq(&queue),
        options().recv_cq(&queue),
    ] {
        let error = options.create(&one).unwrap_err();
        assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
        options.create(&other).unwrap();
    }
}

fn types(site: &Site) -> &'static [QpType] {
    match site.soft {
        Soft::Rxe => &[QpType::RC, QpType::UC, QpType::UD],
        Soft::Siw => &[QpType::RC],
    }
}

#[case]
fn every_type_the_device_has(site: &Site) {
    let context = site.verbs();
    for &qp_type in types(site) {
        let queue_pair = QueuePair::options(qp_type).create(&context).unwrap();
        assert_eq!(queue_pair.qp_type(), qp_type);
    }
}

#[case]
fn unsupported_types_are_refused(site: &Site) {
    let context = site.verbs();
    for qp_type in [QpType::UC, QpType::UD] {
        if !types(site).contains(&qp_type) {
            let error = QueuePair::options(qp_type).create(&context).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
            assert!(error.to_string().contains("reliable connections only"));
        }
    }
    for qp_type in [QpType::XRC_INI, QpType::XRC_TGT, QpType::new(77)] {
        let error = QueuePair::options(qp_type).create(&context).unwrap_err();
        assert_eq!(error.raw_os_error(), None);
        assert!(error.to_string().contains("only RC, UC and UD"), "{error}");
    }
}

#[case]
fn sizes_beyond_the_limits_are_refused(site: &Site) {
    let context = site.verbs();
    let caps = QpCaps {
        max_send_sge: context.limits().max_sge + 1,
        ..QpCaps::default()
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    let Err(Error::Command(error)) = options.create(&context) else {
        panic!("more sg_list than the limit");
    };
    assert_eq!(error.errno, libc::EINVAL);
    assert_eq!(error.command, CommandNumber::CREATE_QP);
    assert_eq!(error.operation, Operation::CreateQueuePair(QpType::RC));
    assert!(
        error
            .cause()
            .unwrap()
            .contains("beyond the device's limits")
    );
}

#[case]
fn many_queue_pairs_have_numbers_of_their_own(site: &Site) {
    let context = site.verbs();
    let domain = context.create_protection_domain().unwrap();
    let queue = context.create_completion_queue(1).unwrap();
    let options = QueuePair::options(QpType::RC)
        .protection_domain(&domain)
        .send_cq(&queue)
        .recv_cq(&queue);
    let pairs: Vec<_> = (0..200)
        .map(|_| options.create(&context).unwrap())
        .collect();
    let numbers: BTreeSet<_> = pairs.iter().map(QueuePair::number).collect();
    assert_eq!(numbers.len(), 200);
    assert!(numbers.iter().all(|number| (1..1 << 24).contains(number)));
}

#[case]
fn two_contexts_of_one_device(site: &Site) {
    let (one, other) = (site.queue_pair(), site.queue_pair());
    assert_ne!(one.number(), other.number());
    drop(one);
    other.state().unwrap();
}

#[case]
fn a_queue_pair_is_one_for_the_connection_manager(site: &Site) {
    let queue_pair = site.queue_pair();
    let limits = *queue_pair.context().limits();
    let queue_pair: &dyn rdmacm_core::QueuePair = &queue_pair;
    assert!((1..1 << 24).contains(&queue_pair.number()));
    let transport = match site.soft {
        Soft::Rxe => Transport::RoCE,
        Soft::Siw => Transport::IWarp,
    };
    assert_eq!(queue_pair.transport(), transport);
    let DepthLimits {
        responder_resources,
        initiator_depth,
    } = queue_pair.depth_limits();
    assert_eq!(u32::from(responder_resources), limits.max_qp_rd_atom);
    assert_eq!(u32::from(initiator_depth), limits.max_qp_init_rd_atom);
    assert!(!queue_pair.has_srq());
    assert_eq!(queue_pair.ece().unwrap(), None);
}

#[case]
fn a_new_queue_pair_reports_its_attributes(site: &Site) {
    let queue_pair = site.queue_pair();
    let attr = queue_pair.query().unwrap();
    let states: &[_] = match site.soft {
        Soft::Rxe => &[Some(QpState::RESET)],
        // Linux 6.1 reports nothing.
        Soft::Siw => &[Some(QpState::INIT), None],
    };
    let state = queue_pair.state().unwrap();
    assert!(states.contains(&state), "{state:?}");
    assert_eq!(attr.mask.contains(QpAttrMask::STATE), state.is_some());
    assert_eq!(attr.qp_state, state.unwrap_or(QpState::RESET));
    assert!(attr.mask.contains(QpAttrMask::CAP));
    assert_eq!(attr.mask.contains(QpAttrMask::AV), site.soft == Soft::Rxe);
    assert!(attr.max_send_wr >= 16 && attr.max_recv_wr >= 16);
}
