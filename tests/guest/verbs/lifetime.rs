//! Which handles keep objects alive, and what is left after dropping them.

use rdmacm_core::QpType;
use rdmacm_tests::Site;
use rdmacm_verbs::QueuePair;

use crate::child;
use rdmacm_tests_macros::case;

#[case]
fn a_queue_pair_keeps_its_objects_alive(site: &Site) {
    let queue_pair = site.queue_pair();
    let again = QueuePair::options(QpType::RC)
        .protection_domain(queue_pair.protection_domain())
        .send_cq(queue_pair.send_cq())
        .recv_cq(queue_pair.recv_cq())
        .create(queue_pair.context())
        .unwrap();
    let number = queue_pair.number();
    drop(queue_pair);
    again.state().unwrap();
    assert_ne!(again.number(), number);
    assert_eq!(again.context().device_name(), site.device);
}

#[case]
fn queue_pairs_are_destroyed_while_others_are_created(site: &Site) {
    let context = site.verbs();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let options = QueuePair::options(QpType::RC);
                    options.create(&context).unwrap().state().unwrap();
                }
            });
        }
    });
}

/// In a process of its own, as the next one.
#[case(alone)]
fn handles_drop_in_any_order(site: &Site) {
    child::run_at("verbs_any_order", site);
}

/// In a process of its own, so that no other test creates objects or descriptors.
#[case(alone)]
fn nothing_leaks(site: &Site) {
    child::run_at("verbs_nothing_is_left", site);
}

#[case(alone)]
fn a_failed_creation_leaks_nothing(site: &Site) {
    child::run_at("verbs_failures_leave_nothing", site);
}

/// In a process of its own, whose limit is changed.
#[case(alone)]
fn memory_beyond_the_limit_is_explained(site: &Site) {
    child::run_at("verbs_locked_memory", site);
}
