//! Posted memory is freed only when its device no longer uses it, in whatever order
//! handles are dropped. Freed memory is filled with a pattern and watched.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_tests::{Pair, Site, Soft};
use rdmacm_verbs::{
    CompletionQueue, Context, ProtectionDomain, QueuePair, RemoteAccessRegion, RemoteMemory,
    SendOperation, SendRequest, SgList,
};
use zerocopy::FromZeros;

use super::{ROOMY, brought, exposed, filled, pattern, received, roomy, sent, sge};
use crate::freed_memory::FreedBlocks;
use rdmacm_tests_macros::case;

/// Longer than a packet, so that some messages are half written.
const LENGTH: usize = 20_000;
/// Requests of each kind.
const EACH: usize = 8;

/// A check of the detection: a write to freed memory is detected.
#[case]
fn freed_memory_is_watched(site: &Site) {
    let freed = FreedBlocks::of_about(LENGTH);
    let domain = site.verbs().create_protection_domain().unwrap();
    let mut buffer = domain.allocate(freed.size()).unwrap();
    let inside = buffer[7..].as_mut_ptr();
    let rest = buffer.split_off(1);
    drop(buffer);
    assert_eq!(freed.count(), 0);
    drop(rest);
    assert_eq!(freed.count(), 1);
    #[expect(unsafe_code, reason = "a stray write is what is tried")]
    // SAFETY: the allocator does not reuse the block, and nothing else uses it.
    unsafe {
        inside.write(0);
    }
    assert!(!freed.are_untouched());
    #[expect(unsafe_code, reason = "made good")]
    // SAFETY: as above.
    unsafe {
        inside.write(crate::freed_memory::POISON);
    }
    assert!(freed.are_untouched());
}

/// The objects that a queue pair depends on.
struct Parts {
    context: Context,
    domain: ProtectionDomain,
    queue: CompletionQueue,
}

impl Parts {
    fn of(site: &Site) -> (Self, QueuePair) {
        let context = site.verbs();
        let domain = context.create_protection_domain().unwrap();
        let channel = context.create_completion_channel().unwrap();
        let queue = CompletionQueue::options(64).channel(&channel);
        let queue = queue.create(&context).unwrap();
        let options = QueuePair::options(QpType::RC).caps(ROOMY);
        let options = options.protection_domain(&domain);
        let options = options.send_cq(&queue).recv_cq(&queue);
        let queue_pair = options.create(&context).unwrap();
        let parts = Self {
            context,
            domain,
            queue,
        };
        (parts, queue_pair)
    }

    fn handles(self) -> [Box<dyn Send>; 3] {
        let Self {
            context,
            domain,
            queue,
        } = self;
        [Box::new(context), Box::new(domain), Box::new(queue)]
    }
}

/// Each order of four.
const ORDERS: usize = 24;

fn drop_in_order(mut handles: Vec<Box<dyn Send>>, order: usize) {
    let mut rest = order;
    while !handles.is_empty() {
        let next = rest % handles.len();
        rest /= handles.len();
        drop(handles.swap_remove(next));
    }
}

fn post_receives(queue_pair: &QueuePair, length: usize) {
    for _ in 0..EACH {
        let room = queue_pair.protection_domain().allocate(length).unwrap();
        queue_pair.post_receive(room).unwrap();
    }
}

/// Reads the peer's exposed memory and sends as much to it.
fn post_sends(queue_pair: &QueuePair, peers: &RemoteAccessRegion, length: usize) {
    let domain = queue_pair.protection_domain();
    for _ in 0..EACH {
        let read = SendOperation::Read(peers.remote());
        let room = domain.allocate(length).unwrap();
        let room = room.slice(0..peers.len()).unwrap();
        queue_pair.post_send(SendRequest::new(read, room)).unwrap();
        let message = domain.allocate(length).unwrap();
        let message = SendRequest::new(SendOperation::Send, message);
        queue_pair.post_send(message).unwrap();
    }
}

/// The peer sends as many messages as there are receive requests, without waiting.
fn flood(peer: &QueuePair) {
    let message = |seed| {
        let memory = sge(peer, &pattern(LENGTH, seed));
        Some(SendRequest::new(SendOperation::Send, memory))
    };
    let mut messages: Vec<_> = (0..8).map(message).collect();
    peer.post_sends(&mut messages).unwrap();
}

/// The peer sends while all handles are dropped, also into a part of a buffer whose
/// other part is dropped.
#[case]
fn a_late_message_finds_the_receive_buffer_of_dropped_handles(site: &Site) {
    for order in 0..ORDERS {
        let freed = FreedBlocks::of_about(LENGTH);
        let (parts, queue_pair) = Parts::of(site);
        let pair = site.pair_of(site.queue_pair_with(ROOMY), queue_pair);
        let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
        let mut part = parts.domain.allocate(freed.size()).unwrap();
        let other = part.split_off(LENGTH);
        server.post_receive(part).unwrap();
        let whole = parts.domain.allocate(freed.size()).unwrap();
        let whole = whole.slice(0..LENGTH).unwrap();
        server.post_receive(whole).unwrap();
        let mut handles = Vec::from(parts.handles());
        handles.push(Box::new(other));
        drop_in_order(handles, order);
        assert_eq!(freed.count(), 0);
        for seed in 1..=2 {
            let message = sge(client, &pattern(LENGTH, seed));
            let message = SendRequest::new(SendOperation::Send, message);
            client.post_send(message).unwrap();
            assert!(sent(client).result().is_ok());
            assert!(brought(received(server), LENGTH) == pattern(LENGTH, seed));
            assert_eq!(freed.count(), usize::from(seed));
        }
    }
}

/// The peer sends while requests of all kinds are outstanding.
fn load(site: &Site, freed: &FreedBlocks, queue_pair: QueuePair) -> Pair {
    let pair = site.pair_of(site.queue_pair_with(ROOMY), queue_pair);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let theirs = exposed(client, LENGTH);
    post_receives(client, 2 * LENGTH);
    post_receives(server, freed.size());
    post_sends(server, &theirs, freed.size());
    flood(client);
    pair
}

/// Drops all handles of one side in this order, then the other side.
fn let_go(pair: Pair, parts: [Box<dyn Send>; 3], order: usize, freed: &FreedBlocks) {
    let Pair { client, server } = pair;
    let mut handles = Vec::from(parts);
    handles.push(Box::new(server.queue_pair));
    drop_in_order(handles, order);
    assert_eq!(freed.count(), 3 * EACH);
    drop(client);
    assert_eq!(freed.count(), 3 * EACH);
}

#[case]
fn no_write_to_memory_freed_with_its_queue_pair(site: &Site) {
    for order in 0..ORDERS {
        let freed = FreedBlocks::of_about(LENGTH);
        let (parts, queue_pair) = Parts::of(site);
        let pair = load(site, &freed, queue_pair);
        assert_eq!(freed.count(), 0);
        let_go(pair, parts.handles(), order, &freed);
    }
}

#[case]
fn no_write_to_memory_freed_with_its_context(site: &Site) {
    for order in 0..ORDERS {
        let freed = FreedBlocks::of_about(LENGTH);
        let (parts, queue_pair) = Parts::of(site);
        let pair = load(site, &freed, queue_pair);
        parts.context.close();
        assert_eq!(freed.count(), 0);
        let_go(pair, parts.handles(), order, &freed);
    }
}

/// Unwinds like a panic, without a message.
fn unwound<T>(work: impl FnOnce() -> T) {
    let unwinding = catch_unwind(AssertUnwindSafe(|| {
        let _dropped_by_it = work();
        resume_unwind(Box::new("on purpose"));
    }));
    assert!(unwinding.is_err());
}

/// The queue pair is not dropped, and owns the posted requests.
#[case]
fn posted_memory_outlives_a_panic(site: &Site) {
    let freed = FreedBlocks::of_about(LENGTH);
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let theirs = exposed(client, LENGTH);
    theirs.write(0, &pattern(LENGTH, 9));
    post_receives(client, 2 * LENGTH);
    unwound(|| {
        post_receives(server, freed.size());
        post_sends(server, &theirs, freed.size());
        drop(filled(server, &vec![1; freed.size()]));
    });
    assert_eq!(freed.count(), 1);
    flood(client);
    for seed in 0..8 {
        assert!(brought(received(server), LENGTH) == pattern(LENGTH, seed));
        let read = sent(server);
        assert!(brought(read, LENGTH) == pattern(LENGTH, 9));
        assert!(sent(server).result().is_ok());
        let came = brought(received(client), freed.size());
        assert!(came.iter().all(|byte| *byte == 0));
    }
    assert_eq!(freed.count(), 1 + 3 * EACH);
}

#[case]
fn no_write_to_memory_freed_by_a_panic(site: &Site) {
    for _ in 0..ORDERS {
        let freed = FreedBlocks::of_about(LENGTH);
        let pair = load(site, &freed, site.queue_pair_with(ROOMY));
        let Pair { client, server } = pair;
        unwound(|| server);
        assert_eq!(freed.count(), 3 * EACH);
        drop(client);
        assert_eq!(freed.count(), 3 * EACH);
    }
}

/// The owner of a connection's queue pair may move it while requests are outstanding.
fn reset(queue_pair: &QueuePair) {
    let queue_pair: &dyn rdmacm_core::QueuePair = queue_pair;
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = QpState::RESET;
    queue_pair.modify(&attr, QpAttrMask::STATE).unwrap();
}

/// siw ignores the move. rxe discards its requests, and may still be writing to their
/// memory.
#[case]
fn a_move_to_reset_frees_nothing(site: &Site) {
    let freed = FreedBlocks::of_about(LENGTH);
    let pair = load(site, &freed, site.queue_pair_with(ROOMY));
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    reset(server);
    assert_eq!(freed.count(), 0);
    if site.soft == Soft::Siw {
        // A notification that arrives during the move may be processed only with the
        // next one.
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let nothing = SendRequest::new(nothing, SgList::NONE);
        client.post_send(nothing).unwrap();
        // All messages arrive as without the move.
        for seed in 0..8 {
            assert!(brought(received(server), LENGTH) == pattern(LENGTH, seed));
            assert!(sent(server).result().is_ok());
            assert!(sent(server).result().is_ok());
            assert!(received(client).result().is_ok());
        }
        assert_eq!(freed.count(), 3 * EACH);
    } else {
        assert!(server.send_cq().poll().unwrap().is_none());
        assert!(server.recv_cq().poll().unwrap().is_none());
        // There is space for as many requests again.
        post_receives(server, freed.size());
        assert_eq!(freed.count(), 0);
    }
    drop(pair);
    let all = if site.soft == Soft::Siw { 3 } else { 4 };
    assert_eq!(freed.count(), all * EACH);
}
