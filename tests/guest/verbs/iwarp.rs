//! siw queue pairs, which the kernel moves when it connects them.

use rdmacm_core::{QpAttr, QpAttrMask, QpState};
use rdmacm_tests::Site;
use rdmacm_tests_macros::case;
use rdmacm_verbs::QueuePair;
use zerocopy::FromZeros;

fn to(queue_pair: &QueuePair, state: QpState) -> rdmacm_verbs::Result<()> {
    let mut attr = QpAttr::new_zeroed();
    (attr.qp_state, attr.port_number) = (state, 1);
    let mask = QpAttrMask::STATE | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS;
    queue_pair.modify(&attr, mask)
}

/// The state, where siw reports one. Linux 6.1 does not, and the response's bytes are
/// not taken for a state.
fn check(queue_pair: &QueuePair, state: QpState) {
    let reported = queue_pair.state().unwrap();
    assert!(
        reported.is_none_or(|reported| reported == state),
        "{reported:?}"
    );
}

#[case(needs(QpsModifiedByDriver))]
fn modify_for_the_connection_manager_changes_nothing(site: &Site) {
    let queue_pair = site.queue_pair();
    for state in [QpState::INIT, QpState::RTR] {
        to(&queue_pair, state).unwrap();
        check(&queue_pair, QpState::INIT);
    }
    let mut attr = QpAttr::new_zeroed();
    attr.port_number = 1;
    queue_pair.modify(&attr, QpAttrMask::PORT).unwrap();
    check(&queue_pair, QpState::INIT);
}

#[case(needs(QpsModifiedByDriver))]
fn the_error_state_is_final(site: &Site) {
    let queue_pair = site.queue_pair();
    to(&queue_pair, QpState::ERR).unwrap();
    check(&queue_pair, QpState::ERR);
    for state in [QpState::RESET, QpState::INIT] {
        to(&queue_pair, state).unwrap();
        check(&queue_pair, QpState::ERR);
    }
}
