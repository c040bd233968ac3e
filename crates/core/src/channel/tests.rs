use std::sync::Arc;

use rdmacm_abi::PortSpace;

use super::EventChannel;
use crate::error::Error;
use crate::id_state::Membership;
use crate::ucma::testing::AcceptAll;

fn channel() -> EventChannel {
    let options = EventChannel::options().ucma(Arc::new(AcceptAll::new()));
    options.open().unwrap()
}

fn group() -> Arc<Membership> {
    Membership::new(([239, 0, 0, 1], 0).into())
}

#[test]
fn a_group_added_after_its_id_is_dropped_leaves_no_registration() {
    let channel = channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    let in_flight = id.enter().unwrap();
    drop(id);
    assert_eq!(
        in_flight.state().add_group(&group()),
        Err(Error::IdDestroyed)
    );
    assert!(channel.state.registrations().is_empty());
}

#[test]
fn no_group_outlives_an_id_that_is_dropped_concurrently() {
    let channel = channel();
    for _ in 0..200 {
        let id = channel.create_id(PortSpace::UDP).unwrap();
        let in_flight = id.enter().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || in_flight.state().add_group(&group()));
            scope.spawn(move || drop(id));
        });
        assert!(channel.state.registrations().is_empty());
    }
}
