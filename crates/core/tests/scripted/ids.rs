//! Ids and their handles as values.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use rdmacm_core::{CmId, IdHandle, PortSpace};

use crate::Fixture;

#[test]
fn an_id_equals_its_handles_and_no_other_id() {
    let fixture = Fixture::new();
    let (id, other) = (fixture.id(PortSpace::TCP), fixture.id(PortSpace::TCP));
    let handle = id.handle();
    assert_eq!(id, handle);
    assert_eq!(handle, id);
    assert_ne!(id, other);
    assert_ne!(other, handle);
    assert_ne!(handle, other);
}

#[test]
fn an_id_hashes_like_the_handle_it_borrows_as() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let hasher = RandomState::new();
    let borrowed: &IdHandle = id.borrow();
    assert_eq!(*borrowed, id.handle());
    assert_eq!(hasher.hash_one(&id), hasher.hash_one(id.handle()));
}

#[test]
#[expect(clippy::mutable_key_type, reason = "equality and hash never change")]
fn a_map_of_ids_is_searched_by_handle() {
    let fixture = Fixture::new();
    let (id, other) = (fixture.id(PortSpace::TCP), fixture.id(PortSpace::UDP));
    let (handle, missing) = (id.handle(), other.handle());
    let mut map = HashMap::from([(id, "first")]);
    assert_eq!(map.get(&handle), Some(&"first"));
    assert_eq!(map.get(&missing), None);
    let ids: HashSet<CmId> = map.drain().map(|(id, _)| id).chain([other]).collect();
    assert!(ids.contains(&handle) && ids.contains(&missing));
    drop(ids);
    assert!(handle.is_destroyed() && handle != missing);
}
