//! Lifetimes of ids and their events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rdmacm_core::{Error, EventKind, PortSpace};
use rdmacm_tests::{PATIENCE, SECOND, Site, expect};
use rdmacm_tests_macros::case;

#[case(each_abi, covers(CREATE_ID))]
fn a_thousand_ids_on_one_channel(site: &Site) {
    let channel = site.channel();
    let mut ids: Vec<_> = (0..1000)
        .map(|_| channel.create_id(PortSpace::TCP).unwrap())
        .collect();
    for id in &ids {
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    }
    let mut kept = ids.split_off(500);
    drop(ids);
    while !kept.is_empty() {
        let event = expect(&channel, EventKind::AddrResolved);
        let place = kept.iter().position(|id| *event.id() == *id).unwrap();
        drop(kept.swap_remove(place));
    }
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi, covers(DESTROY_ID))]
fn unread_events_of_a_dropped_id_are_dropped(site: &Site) {
    let (channel, gone) = site.id();
    gone.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    // The second id's event is behind the first one's in the queue.
    let kept = channel.create_id(PortSpace::TCP).unwrap();
    kept.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    drop(gone);
    assert!(*expect(&channel, EventKind::AddrResolved).id() == kept);
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi, covers(GET_EVENT))]
fn two_threads_share_a_channel(site: &Site) {
    let channel = site.channel();
    let ids: Vec<_> = (0..100)
        .map(|_| channel.create_id(PortSpace::TCP).unwrap())
        .collect();
    let seen: Vec<_> = ids.iter().map(|_| AtomicUsize::new(0)).collect();
    let left = AtomicUsize::new(ids.len());
    let read = || {
        loop {
            let event = match channel.next_event(PATIENCE) {
                Err(Error::Woken) => return,
                event => event.unwrap(),
            };
            let place = ids.iter().position(|id| *event.id() == *id).unwrap();
            seen[place].fetch_add(1, Ordering::Relaxed);
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                return channel.waker().wake();
            }
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for id in &ids {
            id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1));
}

#[case(each_abi)]
fn ids_outlive_their_channel(site: &Site) {
    let (channel, id) = site.id();
    drop(channel);
    id.bind(site.v4(0)).unwrap();
    assert!(id.addresses().unwrap().device.is_some());
}

#[case(each_abi)]
fn a_handle_does_not_keep_its_id_alive(site: &Site) {
    let (channel, id) = site.id();
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let event = expect(&channel, EventKind::AddrResolved);
    assert!(!event.id().is_destroyed());
    drop(id);
    assert!(event.id().is_destroyed());
    assert_eq!(event.id().resolve_route(SECOND), Err(Error::IdDestroyed));
    assert_eq!(event.id().addresses(), Err(Error::IdDestroyed));
}

#[case(each_abi)]
fn handles_are_usable_as_map_keys(site: &Site) {
    let channel = site.channel();
    let ids = [(); 3].map(|()| channel.create_id(PortSpace::TCP).unwrap());
    let names: HashMap<_, _> = ids.iter().map(|id| (id.handle(), id.qp_type())).collect();
    assert_eq!(names.len(), 3);
    ids[1].resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let event = expect(&channel, EventKind::AddrResolved);
    assert!(names.contains_key(event.id()));
    assert!(*event.id() == ids[1] && *event.id() != ids[2]);
}

/// One thread executes commands while another drops the id: each command reaches the id
/// or fails, and none reaches a later id with the same number.
#[case(each_abi)]
fn a_command_in_another_thread_never_hits_the_next_id(site: &Site) {
    let channel = site.channel();
    for _ in 0..50 {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let handle = id.handle();
        std::thread::scope(|scope| {
            let (tell, begun) = std::sync::mpsc::channel();
            let worker = scope.spawn(move || {
                loop {
                    // Nobody listens after the first time.
                    let _ = tell.send(());
                    match handle.bind(site.v4(0)) {
                        Err(Error::IdDestroyed) => return,
                        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
                        Ok(()) => {}
                    }
                }
            });
            begun.recv().unwrap();
            drop(id);
            let next = channel.create_id(PortSpace::TCP).unwrap();
            worker.join().unwrap();
            assert_eq!(next.local_addr(), Ok(None));
        });
    }
}

#[case(each_abi)]
fn an_id_drops_while_another_thread_waits_for_events(site: &Site) {
    let channel = site.channel();
    let kept = channel.create_id(PortSpace::TCP).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| expect(&channel, EventKind::AddrResolved));
        for _ in 0..50 {
            let gone = channel.create_id(PortSpace::TCP).unwrap();
            gone.resolve_addr(None, (site.silent, 7471), SECOND * 60)
                .unwrap();
        }
        kept.resolve_addr(None, site.v4(7471), SECOND).unwrap();
        assert!(*reader.join().unwrap().id() == kept);
    });
}
