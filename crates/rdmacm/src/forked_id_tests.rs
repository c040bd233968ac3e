//! Tests of ids in forked children: those of the event loop's own modules run with another scheduler,
//! too, which has no processes.

use std::sync::Arc;

use rdmacm_core::PortSpace;
use rdmacm_sim::Fabric;
use rdmacm_test_helpers::child_ends;

use crate::ThreadExecutor;
use crate::event_loop::{EventLoop, EventLoopParts, EventQueue, Extensions, ManagedId};

/// As a thread of the parent holds it that dispatches an event in that moment.
#[test]
fn a_child_drops_an_id_without_the_locks_of_its_parent() {
    let host = Fabric::roce(["host"]).find_host("host").unwrap();
    let parts = EventLoopParts {
        channel: host.channel().unwrap(),
        executor: Arc::new(ThreadExecutor::default()),
        max_handshakes: 1,
        extensions: Extensions::default(),
    };
    let event_loop = EventLoop::new(parts, |_| Ok(None)).unwrap();
    let id = event_loop.channel().create_id(PortSpace::TCP).unwrap();
    let mut inherited = Some(ManagedId::new(&event_loop, id, EventQueue::new()));
    let work = || assert!(child_ends(|| drop(inherited.take())));
    event_loop.while_ids_are_locked(work);
    assert_eq!(host.id_count(), 1);
    drop(inherited);
    assert_eq!(host.id_count(), 0);
}
