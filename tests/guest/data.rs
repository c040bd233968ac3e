//! Data transfer through queue pairs.

use std::thread;
use std::time::Instant;

use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, Pair, Site};
use rdmacm_verbs::{
    Buffer, Completion, CompletionQueue, QpCaps, QueuePair, RemoteAccessRegion, SendOperation,
    SendRequest, SgList,
};

pub(crate) mod access;
pub(crate) mod errors;
pub(crate) mod freed_memory;
pub(crate) mod hint;
pub(crate) mod invalid_requests;
pub(crate) mod operations;
pub(crate) mod order;
pub(crate) mod queued_sends;
pub(crate) mod random;
pub(crate) mod reset;
pub(crate) mod shared;
pub(crate) mod teardown;
pub(crate) mod unreliable;

/// Capacities that suffice for every test.
pub(crate) const ROOMY: QpCaps = QpCaps {
    max_send_wr: 32,
    max_recv_wr: 32,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};

/// Every access right of a peer.
pub(crate) const ALL: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_WRITE)
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_ATOMIC);

/// Two connected sides with these capacities.
pub(crate) fn roomy(site: &Site) -> Pair {
    let [client, server] = [(); 2].map(|()| site.queue_pair_with(ROOMY));
    site.pair_of(client, server)
}

/// The next completion, which must arrive.
pub(crate) fn next(queue: &CompletionQueue) -> Completion {
    queue.next(PATIENCE).unwrap().unwrap()
}

/// The next completion, without a request for a notification.
#[track_caller]
pub(crate) fn polled(queue: &CompletionQueue) -> Completion {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(completion) = queue.poll().unwrap() {
            return completion;
        }
        assert!(Instant::now() < until, "no completion came");
        thread::yield_now();
    }
}

/// The result of the next send request.
pub(crate) fn sent(queue_pair: &QueuePair) -> Completion {
    next(queue_pair.send_cq())
}

/// The next received message.
pub(crate) fn received(queue_pair: &QueuePair) -> Completion {
    next(queue_pair.recv_cq())
}

/// Bytes that differ from their neighbours and from those of other seeds.
pub(crate) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    let rows = (0..=u8::MAX).cycle();
    let bytes = rows.flat_map(|row| (0..251).map(move |column: u8| column ^ row));
    bytes
        .take(length)
        .map(|byte| byte.wrapping_add(seed))
        .collect()
}

/// These bytes in registered memory of a queue pair's domain.
pub(crate) fn filled(queue_pair: &QueuePair, bytes: &[u8]) -> Buffer {
    let domain = queue_pair.protection_domain();
    let mut buffer = domain.allocate(bytes.len().max(1)).unwrap();
    buffer[..bytes.len()].copy_from_slice(bytes);
    buffer
}

/// These bytes as one scatter/gather entry, which may be empty.
pub(crate) fn sge(queue_pair: &QueuePair, bytes: &[u8]) -> SgList {
    let sge = filled(queue_pair, bytes).slice(0..bytes.len());
    sge.unwrap().into()
}

/// Memory to receive into.
pub(crate) fn room(queue_pair: &QueuePair, length: usize) -> SgList {
    sge(queue_pair, &vec![0xee; length])
}

/// Memory of a queue pair's domain that the peer may access.
pub(crate) fn exposed(queue_pair: &QueuePair, length: usize) -> RemoteAccessRegion {
    let domain = queue_pair.protection_domain();
    domain.expose(length, ALL).unwrap()
}

pub(crate) fn contents(memory: &RemoteAccessRegion) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes);
    bytes
}

/// The first bytes of the memory of a completion, which is a success.
#[track_caller]
pub(crate) fn brought(completion: Completion, length: usize) -> Vec<u8> {
    assert!(completion.result().is_ok(), "{completion:?}");
    completion.sg_list.into_buffer().unwrap()[..length].to_vec()
}

/// Posts a request and waits for its completion.
pub(crate) fn perform(
    queue_pair: &QueuePair,
    operation: SendOperation,
    memory: impl Into<SgList>,
) -> Completion {
    let request = SendRequest::new(operation, memory);
    let work = queue_pair.post_send(request).unwrap();
    let completion = sent(queue_pair);
    assert_eq!(completion.work, work);
    assert!(completion.result().is_ok(), "{completion:?}");
    completion
}
