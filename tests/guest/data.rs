//! Data through queue pairs.

use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, Pair, Site};
use rdmacm_verbs::{
    Buffer, Completion, CompletionQueue, QpCaps, QueuePair, RemoteAccessRegion, SendOperation,
    SendRequest, SgList,
};

pub(crate) mod access;
pub(crate) mod errors;
pub(crate) mod freed_memory;
pub(crate) mod invalid_requests;
pub(crate) mod operations;
pub(crate) mod order;
pub(crate) mod random;
pub(crate) mod shared;
pub(crate) mod teardown;
pub(crate) mod unreliable;

/// Room for whatever a test asks.
pub(crate) const ROOMY: QpCaps = QpCaps {
    max_send_wr: 32,
    max_recv_wr: 32,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};

/// Whatever a peer may do.
pub(crate) const ALL: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_WRITE)
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_ATOMIC);

/// Two connected sides with room.
pub(crate) fn roomy(site: &Site) -> Pair {
    let [client, server] = [(); 2].map(|()| site.queue_pair_with(ROOMY));
    site.pair_of(client, server)
}

/// The next completion, which comes.
pub(crate) fn next(queue: &CompletionQueue) -> Completion {
    queue.next(PATIENCE).unwrap().unwrap()
}

/// What became of the next thing sent.
pub(crate) fn sent(queue_pair: &QueuePair) -> Completion {
    next(queue_pair.send_queue())
}

/// What came next.
pub(crate) fn received(queue_pair: &QueuePair) -> Completion {
    next(queue_pair.receive_queue())
}

/// Bytes that differ from their neighbours and from those of another seed.
pub(crate) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    let rows = (0..=u8::MAX).cycle();
    let bytes = rows.flat_map(|row| (0..251).map(move |column: u8| column ^ row));
    bytes
        .take(length)
        .map(|byte| byte.wrapping_add(seed))
        .collect()
}

/// Registered bytes of a queue pair's domain.
pub(crate) fn filled(queue_pair: &QueuePair, bytes: &[u8]) -> Buffer {
    let domain = queue_pair.protection_domain();
    let mut buffer = domain.allocate(bytes.len().max(1)).unwrap();
    buffer[..bytes.len()].copy_from_slice(bytes);
    buffer
}

/// As one piece, which may be empty.
pub(crate) fn sge(queue_pair: &QueuePair, bytes: &[u8]) -> SgList {
    let sge = filled(queue_pair, bytes).part(0..bytes.len());
    sge.unwrap().into()
}

/// Room to receive into.
pub(crate) fn room(queue_pair: &QueuePair, length: usize) -> SgList {
    sge(queue_pair, &vec![0xee; length])
}

/// Memory of a queue pair's domain for its peer.
pub(crate) fn exposed(queue_pair: &QueuePair, length: usize) -> RemoteAccessRegion {
    let domain = queue_pair.protection_domain();
    domain.expose(length, ALL).unwrap()
}

pub(crate) fn contents(memory: &RemoteAccessRegion) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes);
    bytes
}

/// The first bytes of what a completion brought back.
pub(crate) fn brought(completion: Completion, length: usize) -> Vec<u8> {
    completion.sg_list.into_buffer().unwrap()[..length].to_vec()
}

/// Posts a request and waits until it is done.
pub(crate) fn perform(
    queue_pair: &QueuePair,
    operation: SendOperation,
    memory: impl Into<SgList>,
) -> Completion {
    let request = SendRequest::new(operation, memory);
    let work = queue_pair.post_send(request).unwrap();
    let completion = sent(queue_pair);
    assert_eq!(completion.work, work);
    assert!(completion.result.is_ok(), "{completion:?}");
    completion
}
