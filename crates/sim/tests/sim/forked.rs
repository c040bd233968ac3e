//! Forked children, which share memory and descriptors with their parent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use rdmacm_core::EventKind;
use rdmacm_sim::Fabric;
use rdmacm_test_helpers::WatchedThread;
use rdmacm_verbs::SendOperation;

use crate::clock::is_readable;
use crate::connected::{Connected, REMOTE, done, poll};
use crate::pair::{Hosts, client_param};
use crate::{SECOND, errno};

/// Held to write while there is a child, which has copies of all descriptors. A test that waits until
/// a descriptor is closed holds it to read.
pub(crate) static CHILDREN: RwLock<()> = RwLock::new(());

/// Forks. The child does `work` and exits. Whether it has done so, without a panic and in time.
pub(crate) fn child_ends(work: impl FnOnce()) -> bool {
    let _alone = CHILDREN.write().unwrap_or_else(PoisonError::into_inner);
    rdmacm_test_helpers::child_ends(work)
}

#[test]
fn a_child_neither_writes_its_parents_memory_nor_completes_its_requests() {
    let delay = Duration::from_millis(20);
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(8, REMOTE).unwrap();
    region.write(0, &[0; 8]);
    let written = || {
        let mut bytes = [0; 8];
        region.read(0, &mut bytes);
        bytes
    };
    pair.post_receive();
    pair.fabric.set_delay(delay);
    pair.start(SendOperation::Write(region.remote()), &[7; 8]);
    pair.start(SendOperation::Send, b"hello");
    assert!(child_ends(|| pair.fabric.advance(2 * delay)));
    assert_eq!(written(), [0; 8]);
    assert!(poll(pair.far.recv_cq()).is_none());
    pair.fabric.advance(2 * delay);
    assert_eq!(written(), [7; 8]);
    assert_eq!(done(&poll(pair.far.recv_cq()).unwrap()).bytes, 5);
    assert!(poll(pair.far.recv_cq()).is_none());
    for _ in 0..2 {
        done(&pair.sent());
    }
    assert!(poll(pair.near.send_cq()).is_none());
}

#[test]
fn a_child_takes_no_event_from_its_parent() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(1);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        hosts.fabric.set_delay(SECOND);
        id.connect(client_param()).unwrap();
        let sent = hosts.fabric.elapsed();
        assert!(child_ends(|| {
            hosts.fabric.advance(2 * SECOND);
            hosts.server.set_responding(false);
            hosts.server.remove_device(hosts.choose("rxe0", "siw0"));
            listener.channel.waker().wake();
            errno(listener.channel.try_next_event(), libc::EACCES);
        }));
        assert!(!is_readable(&listener.channel));
        assert_eq!(hosts.fabric.elapsed(), sent);
        let event = listener.channel.next_event(2 * SECOND).unwrap();
        assert_eq!(event.kind(), EventKind::ConnectRequest);
    }
}

#[test]
fn a_wait_in_a_child_ends_at_its_deadline() {
    let hosts = Hosts::roce();
    let file = hosts.client.open().unwrap();
    let begun = file.now();
    let (thread, threads) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            thread.send(WatchedThread::current()).unwrap();
            file.wait(None, None).unwrap()
        });
        threads.recv().unwrap().wait_until_asleep();
        let has_ended = child_ends(|| {
            assert_eq!(file.now(), begun);
            hosts.fabric.set_delay(SECOND);
            assert!(!file.wait(Some(begun + SECOND), None).unwrap());
            assert_eq!(file.now(), begun + SECOND);
        });
        file.wake();
        assert!(waiting.join().unwrap());
        assert!(has_ended);
    });
    assert_eq!(file.now(), begun);
}

/// As with the kernel, its commands would be refused.
#[test]
fn a_child_has_a_fabric_of_its_own_only() {
    let hosts = Hosts::roce();
    assert!(child_ends(|| {
        assert_eq!(hosts.client.address(), None);
        hosts.client.open().unwrap_err();
        let own = Hosts::roce();
        let channel = own.client.channel().unwrap();
        drop(own.routed(&channel));
    }));
    hosts.client.open().unwrap();
}

/// Another thread of the parent may have locked the fabric at the fork.
#[test]
fn a_child_waits_for_no_thread_of_its_parent() {
    let fabric = Fabric::roce(["host"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fabric.set_loss(0);
            }
        });
        let have_ended = (0..50).all(|_| child_ends(|| fabric.advance(SECOND)));
        is_over.store(true, Ordering::Relaxed);
        assert!(have_ended);
    });
}
