//! Answers no kernel should give: errors or odd values, never a panic.

use std::sync::Arc;

use rdmacm_core::{EventChannel, EventKind, PortSpace};
use rdmacm_tests::{Garbling, SECOND, Site};

crate::cases!("garbled":
    answers_about_an_id_are_checked,
    events_are_checked,
);

fn answers_about_an_id_are_checked(site: &Site) {
    for seed in 0..200 {
        let device = Arc::new(Garbling::new(seed));
        let channel = EventChannel::options()
            .device(Arc::clone(&device) as _)
            .dialect(site.dialect)
            .open()
            .unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind(site.v4(0)).unwrap();
        device.garble();
        // Right or wrong, each comes back and says something.
        assert!(!format!("{:?}", id.addresses()).is_empty());
        assert!(!format!("{:?}", id.gids()).is_empty());
        assert!(!format!("{:?}", id.path_records()).is_empty());
    }
}

/// An event of nobody is dropped, one of an unknown kind is handed on.
fn events_are_checked(site: &Site) {
    for seed in 0..200 {
        let device = Arc::new(Garbling::new(seed));
        let channel = EventChannel::options()
            .device(Arc::clone(&device) as _)
            .dialect(site.dialect)
            .open()
            .unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        device.garble_all_but_the_owner();
        id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
        let event = channel.next_event(SECOND * 30).unwrap();
        assert!(event.id().is(&id));
        assert!(matches!(event.kind(), EventKind::Unknown(_)), "{seed}");
        assert!(!format!("{event:?} {:?}", event.failure()).is_empty());
    }
}
