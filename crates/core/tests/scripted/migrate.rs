//! Ids that move to another channel.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use rdmacm_abi::{CreateIdResponse, DestroyId, EventNumber, EventResponse, MigrateId};
use rdmacm_core::{CmId, CommandNumber, EventChannel, EventKind, IdHandle, JoinFlags, PortSpace};
use rdmacm_test_helpers::WatchedThread;

use crate::script::{FIRST_ID, Scripted};
use crate::{Fixture, errno};

/// Another channel, of the same dialect.
fn other() -> Fixture {
    Fixture::new()
}

const CHILD: u32 = 77;

/// A listener, and the event of a connect request to it whose child is [`CHILD`].
fn listener_with_a_request(on: &Fixture) -> (CmId, EventResponse) {
    let listener = on.id(PortSpace::TCP);
    let request = EventResponse {
        id: CHILD,
        ..on.ucma.event(EventNumber::CONNECT_REQUEST, 0)
    };
    listener.listen(1).unwrap();
    (listener, request)
}

#[test]
fn a_migration_is_sent_to_the_new_file_and_names_the_old_one() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::TCP);
    id.migrate(&new.channel).unwrap();
    assert!(old.sent().is_empty());
    let sent = new.ucma.take();
    assert_eq!(sent[0].number, CommandNumber::MIGRATE_ID);
    assert_eq!(sent[0].request::<MigrateId>().id, FIRST_ID);
    assert_eq!(sent[0].old_file, Some(old.channel.as_raw_fd()));
    assert!(new.ucma.is_notified(), "for the events that moved");
    id.listen(1).unwrap();
    assert_eq!(new.sent(), [CommandNumber::LISTEN]);
    id.migrate(&new.channel).unwrap();
    assert!(new.sent().is_empty(), "it is there");
    drop(id);
    assert_eq!(new.sent(), [CommandNumber::DESTROY_ID]);
    assert!(old.sent().is_empty());
}

#[test]
fn events_find_an_id_on_both_channels_until_it_is_dropped() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::UDP);
    let group = ([239, 71, 0, 1], 0);
    let event = old.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    let _member = id.join_multicast(group, JoinFlags::FULL_MEMBER).unwrap();
    let joined = old.ucma.event(EventNumber::MULTICAST_JOIN, 0);
    id.migrate(&new.channel).unwrap();
    for fixture in [&old, &new] {
        for event in [event, joined] {
            fixture.ucma.report(&event);
            let found = fixture.channel.try_next_event().unwrap().unwrap();
            assert_eq!(*found.id(), id);
        }
    }
    drop(id);
    for fixture in [&old, &new] {
        for event in [event, joined] {
            fixture.ucma.report(&event);
            assert!(fixture.channel.try_next_event().unwrap().is_none());
        }
    }
}

#[test]
fn a_group_left_after_a_migration_is_unregistered_on_both_channels() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::UDP);
    let member = id.join_multicast(([239, 71, 0, 1], 0), JoinFlags::FULL_MEMBER);
    let joined = old.ucma.event(EventNumber::MULTICAST_JOIN, 0);
    id.migrate(&new.channel).unwrap();
    member.unwrap().leave().unwrap();
    for fixture in [&old, &new] {
        fixture.ucma.report(&joined);
        assert!(fixture.channel.try_next_event().unwrap().is_none());
    }
}

#[test]
fn a_refused_migration_leaves_the_id_on_its_channel() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::TCP);
    let event = old.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    new.ucma.refuse(CommandNumber::MIGRATE_ID, libc::ENOENT);
    errno(id.migrate(&new.channel), libc::ENOENT);
    new.ucma.report(&event);
    assert!(new.channel.try_next_event().unwrap().is_none());
    old.ucma.report(&event);
    assert!(old.channel.try_next_event().unwrap().is_some());
    id.listen(1).unwrap();
    assert_eq!(old.sent(), [CommandNumber::LISTEN]);
}

#[test]
fn a_refused_migration_back_keeps_the_earlier_registration() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::TCP);
    let event = old.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    id.migrate(&new.channel).unwrap();
    old.ucma.refuse(CommandNumber::MIGRATE_ID, libc::ENOENT);
    errno(id.migrate(&old.channel), libc::ENOENT);
    // One may be on its way to a reader there.
    old.ucma.report(&event);
    assert!(old.channel.try_next_event().unwrap().is_some());
}

#[test]
fn the_event_of_a_resolution_migrates_and_others_stay() {
    let (old, new) = (Fixture::new(), other());
    let (id, stays) = (old.id(PortSpace::TCP), old.id(PortSpace::TCP));
    id.begin_resolution().unwrap().finish(0);
    stays.begin_resolution().unwrap().finish(0);
    id.migrate(&new.channel).unwrap();
    let event = new.channel.try_next_event().unwrap().unwrap();
    assert_eq!(
        (event.kind(), event.id()),
        (EventKind::AddrInfoResolved, &*id)
    );
    let event = old.channel.try_next_event().unwrap().unwrap();
    assert_eq!(*event.id(), stays);
    assert!(old.channel.try_next_event().unwrap().is_none());
}

#[test]
fn connect_requests_follow_a_listener_from_its_previous_channels() {
    let (old, between, new) = (Fixture::new(), other(), other());
    let listener = old.id(PortSpace::TCP);
    listener.listen(1).unwrap();
    listener.migrate(&between.channel).unwrap();
    listener.migrate(&new.channel).unwrap();
    let mut request = old.ucma.event(EventNumber::CONNECT_REQUEST, 0);
    request.id = 88;
    new.ucma.report(&request);
    new.ucma.forget();
    // It is not on the channel that was left last: then on the one before.
    new.ucma.refuse(CommandNumber::MIGRATE_ID, libc::EINVAL);
    let event = new.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.child().unwrap().qp_type(), listener.qp_type());
    let sent = new.ucma.take();
    assert!(sent.iter().all(|one| one.request::<MigrateId>().id == 88));
    let from: Vec<_> = sent.iter().map(|one| one.old_file.unwrap()).collect();
    assert_eq!(from, [between.channel.as_raw_fd(), old.channel.as_raw_fd()]);
}

/// A child whose device is gone does not migrate, and is there until it is destroyed.
#[test]
fn a_child_that_does_not_migrate_is_destroyed_where_it_is() {
    let (old, new) = (Fixture::new(), other());
    let (listener, request) = listener_with_a_request(&old);
    listener.migrate(&new.channel).unwrap();
    new.ucma.report(&request);
    new.ucma.refuse(CommandNumber::MIGRATE_ID, libc::ENXIO);
    let event = new.channel.try_next_event().unwrap().unwrap();
    for fixture in [&old, &new] {
        fixture.ucma.forget();
    }
    drop(event);
    assert!(new.sent().is_empty());
    let sent = old.ucma.take();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].request::<DestroyId>().id, CHILD);
}

/// A request that came between would be on a file that nobody knows of.
#[test]
fn an_id_does_not_begin_to_listen_during_a_migration() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::TCP);
    let (handle, file) = (IdHandle::clone(&id), Arc::clone(&old.ucma));
    let (is_listening, listens) = channel();
    new.ucma.during(CommandNumber::MIGRATE_ID, move || {
        let (has_begun, begun) = channel();
        thread::spawn(move || {
            has_begun.send(WatchedThread::current()).unwrap();
            is_listening.send(handle.listen(1)).unwrap();
        });
        begun.recv().unwrap().wait_until_asleep();
        assert!(file.take().is_empty());
        // As the kernel does: the id is no longer there.
        file.refuse(CommandNumber::LISTEN, libc::EINVAL);
    });
    id.migrate(&new.channel).unwrap();
    listens.recv().unwrap().unwrap();
    let (migrate, listen) = (CommandNumber::MIGRATE_ID, CommandNumber::LISTEN);
    assert_eq!(old.sent(), [listen]);
    assert_eq!(new.sent(), [migrate, listen]);
}

#[test]
fn an_id_that_does_not_listen_keeps_no_previous_channel_open() {
    let (old, new) = (Fixture::new(), other());
    let id = old.id(PortSpace::TCP);
    id.migrate(&new.channel).unwrap();
    let Fixture { ucma, channel } = old;
    let ucma: std::sync::Weak<Scripted> = Arc::downgrade(&{ ucma });
    drop::<EventChannel>(channel);
    assert!(ucma.upgrade().is_none());
    drop(id);
}

/// A request that was read while its listener was dropped: its id is on the file through which
/// the request came, not on that where it is read.
#[test]
fn a_child_without_a_listener_is_destroyed_on_the_file_that_has_it() {
    let (first, second, last) = (Fixture::new(), other(), other());
    let (listener, request) = listener_with_a_request(&first);
    for to in [&second, &last] {
        listener.migrate(&to.channel).unwrap();
    }
    drop(listener);
    for fixture in [&first, &second, &last] {
        fixture.ucma.forget();
    }
    let destroy = CommandNumber::DESTROY_ID;
    let delivered = || {
        last.ucma.report(&request);
        assert!(last.channel.try_next_event().unwrap().is_none());
        [&first, &second, &last].map(|fixture| {
            let sent = fixture.ucma.take();
            assert!(sent.iter().all(|one| one.number == destroy));
            let ids = sent.iter().map(|one| one.request::<DestroyId>().id);
            ids.collect::<Vec<_>>()
        })
    };
    assert_eq!(delivered(), [vec![], vec![], vec![CHILD]], "it is there");
    last.ucma.refuse(destroy, libc::ENOENT);
    assert_eq!(delivered(), [vec![], vec![], vec![CHILD]], "it is gone");
    for fixture in [&second, &last] {
        fixture.ucma.refuse(destroy, libc::EINVAL);
    }
    assert_eq!(delivered(), [[CHILD]; 3].map(Vec::from));
}

/// A listener that is dropped closes the file that it came from, on which the child of a request
/// is. The kernel may then give the child's number to another id.
#[test]
fn the_file_of_a_child_stays_open_while_its_request_is_read() {
    let (old, new) = (Fixture::new(), other());
    let (listener, request) = listener_with_a_request(&old);
    listener.migrate(&new.channel).unwrap();
    let Fixture { ucma, channel } = old;
    drop::<EventChannel>(channel);
    ucma.forget();
    let (of_child, file) = (Arc::clone(&ucma), Arc::clone(&new.ucma));
    new.ucma.report(&request);
    new.ucma.while_an_event_is_read(move || {
        drop(listener);
        assert!(Arc::strong_count(&of_child) > 2, "the file is closed");
        file.forget();
        file.refuse(CommandNumber::DESTROY_ID, libc::EINVAL);
    });
    assert!(new.channel.try_next_event().unwrap().is_none());
    let destroy: DestroyId = ucma.only(CommandNumber::DESTROY_ID);
    assert_eq!(destroy.id, CHILD);
    assert_eq!(Arc::strong_count(&ucma), 1, "nobody reads any more");
}

/// The listener came and went after the reader had looked from where requests may come.
#[test]
fn a_child_whose_file_may_be_closed_is_left_to_the_kernel() {
    let (old, new) = (Fixture::new(), other());
    let (listener, request) = listener_with_a_request(&old);
    let file = Arc::clone(&new.ucma);
    let new = Arc::new(new);
    let to = Arc::clone(&new);
    new.ucma.report(&request);
    new.ucma.while_an_event_is_read(move || {
        listener.migrate(&to.channel).unwrap();
        drop((listener, old));
        file.forget();
        file.answer(CommandNumber::CREATE_ID, &CreateIdResponse { id: CHILD });
        std::mem::forget(to.channel.create_id(PortSpace::TCP).unwrap());
    });
    assert!(new.channel.try_next_event().unwrap().is_none());
    assert_eq!(new.sent(), [CommandNumber::CREATE_ID], "the new id lives");
}
