//! Malformed responses of the kernel cause errors and never panics.

use std::sync::Arc;

use rdmacm_core::{AddressAbi, Error, EventKind, PortSpace};
use rdmacm_tests::{CorruptedResponses, PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;

#[case(each_abi)]
fn answers_about_an_id_are_checked(site: &Site) {
    for seed in 0..200 {
        let device = Arc::new(CorruptedResponses::new(seed));
        let channel = site.channel_on(&device);
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind(site.v4(0)).unwrap();
        device.corrupt();
        // Four billion paths, and addresses of an unknown family.
        assert!(matches!(id.path_records(), Err(Error::Answer { .. })));
        match site.abi {
            AddressAbi::AnyFamily => {
                assert!(matches!(id.addresses(), Err(Error::Answer { .. })));
                assert!(matches!(id.gids(), Err(Error::Answer { .. })));
            }
            AddressAbi::IpOnly => {
                assert_eq!(id.addresses().unwrap().destination, None);
                id.gids().unwrap();
            }
        }
    }
}

/// An event without an owner is dropped; one of an unknown kind is returned.
#[case(each_abi)]
fn events_are_checked(site: &Site) {
    for seed in 0..200 {
        let device = Arc::new(CorruptedResponses::new(seed));
        let channel = site.channel_on(&device);
        let id = channel.create_id(PortSpace::TCP).unwrap();
        device.corrupt_all_but_the_uid();
        id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
        let event = channel.next_event(PATIENCE).unwrap();
        assert!(*event.id() == id);
        assert!(matches!(event.kind(), EventKind::Unknown(_)), "{seed}");
        assert!(event.private_data().len() <= 256);
        assert_eq!(event.failure().is_some(), event.status() != 0);
    }
}
