//! Every operation, at the sizes where the drivers' behaviour changes.

use rdmacm_tests::{Pair, Site, Soft};
use rdmacm_verbs::{
    Completion, CompletionInfo, QueuePair, SendOperation, SendRequest, SgList, WcOpcode, WcStatus,
};

use super::{
    ALL, brought, contents, exposed, filled, pattern, perform, received, room, roomy, sent, sge,
};
use rdmacm_tests_macros::case;

/// Empty, inline (rxe's and siw's limits), one packet (rxe's and TCP's sizes), and many
/// packets.
pub(super) const SIZES: [usize; 13] = [
    0,
    1,
    63,
    64,
    65,
    80,
    1023,
    1024,
    1025,
    1447,
    1448,
    4096,
    1 << 20,
];

fn ends(pair: &Pair) -> (&QueuePair, &QueuePair) {
    (&pair.client.queue_pair, &pair.server.queue_pair)
}

#[case]
fn messages_of_every_size_arrive(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    for (from, to) in [(client, server), (server, client)] {
        for (seed, size) in (1..).zip(SIZES) {
            let bytes = pattern(size, seed);
            let posted = to.post_receive(room(to, size)).unwrap();
            let done = perform(from, SendOperation::Send, sge(from, &bytes));
            assert_eq!(done.result().unwrap().opcode, WcOpcode::SEND);
            assert_eq!(brought(done, size), bytes);
            let came = received(to);
            assert_eq!((came.work, came.qp_number()), (posted, to.number()));
            let CompletionInfo {
                opcode,
                bytes: count,
                ..
            } = came.result().unwrap();
            assert_eq!((opcode, count as usize), (WcOpcode::RECV, size));
            assert_eq!(brought(came, size), bytes);
        }
    }
}

#[case]
fn an_empty_message_arrives(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    let memory = exposed(server, 8);
    let nothing = memory.remote().slice(0..0).unwrap();
    for of_nothing in [SgList::NONE, sge(client, &[])] {
        server.post_receive(SgList::NONE).unwrap();
        drop(perform(client, SendOperation::Send, of_nothing));
        let came = received(server);
        assert_eq!(came.result().unwrap().bytes, 0);
        assert!(came.sg_list.is_empty());
    }
    for in_line in [true, false] {
        server.post_receive(room(server, 4)).unwrap();
        let request = if in_line {
            SendRequest::inline(SendOperation::Send, &[])
        } else {
            SendRequest::new(SendOperation::Send, SgList::NONE)
        };
        client.post_send(request).unwrap();
        assert!(sent(client).result().is_ok());
        let came = received(server);
        assert_eq!(came.result().unwrap().bytes, 0);
        assert_eq!(brought(came, 4), [0xee; 4]);
    }
    drop(perform(
        client,
        SendOperation::Write(nothing),
        sge(client, &[]),
    ));
    drop(perform(client, SendOperation::Write(nothing), SgList::NONE));
    drop(perform(
        client,
        SendOperation::Read(nothing),
        sge(client, &[]),
    ));
    drop(perform(client, SendOperation::Read(nothing), SgList::NONE));
    assert_eq!(contents(&memory), [0; 8]);
}

#[case]
fn memory_of_every_size_is_written_and_read(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    for (seed, size) in (1..).zip(SIZES) {
        let length = size.max(1);
        let memory = exposed(server, length);
        assert_eq!((memory.len(), memory.access()), (length, ALL));
        let remote = memory.remote().slice(0..size as u64).unwrap();
        let bytes = pattern(size, seed);
        let done = perform(client, SendOperation::Write(remote), sge(client, &bytes));
        assert_eq!(done.result().unwrap().opcode, WcOpcode::RDMA_WRITE);
        let read = SendOperation::Read(remote);
        let done = perform(client, read, room(client, size));
        assert_eq!(done.result().unwrap().opcode, WcOpcode::RDMA_READ);
        assert_eq!(brought(done, size), bytes);
        assert_eq!(contents(&memory)[..size], bytes);
        assert!(contents(&memory)[size..].iter().all(|byte| *byte == 0));
    }
}

#[case]
fn the_middle_is_written_and_read(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    let memory = exposed(server, 4096);
    memory.write(0, &[9; 4096]);
    let middle = memory.remote().slice(5..3005).unwrap();
    let buffer = filled(client, &pattern(4000, 1));
    let part = buffer.slice(7..3007).unwrap();
    let done = perform(client, SendOperation::Write(middle), part);
    let mut buffer = done.sg_list.into_buffer().unwrap();
    buffer.fill(3);
    let part = buffer.slice(7..3007).unwrap();
    let done = perform(client, SendOperation::Read(middle), part);
    let buffer = done.sg_list.into_buffer().unwrap();
    assert_eq!(buffer[7..3007], pattern(4000, 1)[7..3007]);
    let mut around = buffer[..7].iter().chain(&buffer[3007..]);
    assert!(around.all(|byte| *byte == 3));
    // The read's data has arrived: on iWARP a write's completion does not prove that.
    let seen = contents(&memory);
    assert_eq!(seen[5..3005], pattern(4000, 1)[7..3007]);
    assert!(seen[..5].iter().chain(&seen[3005..]).all(|byte| *byte == 9));
}

#[case]
fn inline_data_are_copied(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    let most = client.caps().max_inline_data as usize;
    assert!(most >= 64);
    let memory = exposed(server, most + 1);
    for size in [0, 1, 63, 64, most] {
        server.post_receive(room(server, size)).unwrap();
        let mut bytes = pattern(size, 5);
        let request = SendRequest::inline(SendOperation::Send, &bytes);
        client.post_send(request).unwrap();
        bytes.fill(0);
        assert!(sent(client).sg_list.is_empty());
        assert_eq!(brought(received(server), size), pattern(size, 5));

        let remote = memory.remote().slice(..size as u64).unwrap();
        let mut bytes = pattern(size, 6);
        let request = SendRequest::inline(SendOperation::Write(remote), &bytes);
        client.post_send(request).unwrap();
        bytes.fill(0);
        assert!(sent(client).result().is_ok());
        // On iWARP a write's completion does not prove that it has arrived; a later
        // message does.
        server.post_receive(SgList::NONE).unwrap();
        drop(perform(client, SendOperation::Send, SgList::NONE));
        assert!(received(server).result().is_ok());
        let seen = contents(&memory);
        assert_eq!(seen[..size], pattern(size, 6));
        assert!(seen[size..].iter().all(|byte| *byte == 0));
    }
}

/// The ranges of four entries for this many bytes. One is empty, and if possible all
/// lengths differ.
fn cuts(size: usize) -> [usize; 5] {
    [0, 1, 1, 1 + size / 3, size].map(|at| at.min(size))
}

/// These bytes as several entries.
fn gathered(queue_pair: &QueuePair, bytes: &[u8]) -> SgList {
    let cuts = cuts(bytes.len());
    let parts = cuts.windows(2).map(|ends| {
        let part = &bytes[ends[0]..ends[1]];
        let buffer = filled(queue_pair, part);
        buffer.slice(0..part.len()).unwrap()
    });
    SgList::from(parts.collect::<Vec<_>>())
}

/// Memory to receive into as entries of other lengths.
fn scattered(queue_pair: &QueuePair, size: usize) -> SgList {
    let cuts = cuts(size);
    let parts = cuts.windows(2).rev().map(|ends| {
        let length = ends[1] - ends[0];
        let buffer = filled(queue_pair, &vec![0xee; length]);
        buffer.slice(0..length).unwrap()
    });
    SgList::from(parts.collect::<Vec<_>>())
}

/// The bytes of all entries.
fn together(completion: Completion) -> Vec<u8> {
    assert_eq!(completion.sg_list.len(), 4);
    let parts = completion.sg_list.into_iter().flat_map(|sge| {
        let length = sge.len();
        sge.into_buffer().unwrap()[..length].to_vec()
    });
    parts.collect()
}

#[case]
fn messages_are_gathered_and_scattered(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    for (seed, size) in (1..).zip(SIZES) {
        let bytes = pattern(size, seed);
        server.post_receive(scattered(server, size)).unwrap();
        let done = perform(client, SendOperation::Send, gathered(client, &bytes));
        assert_eq!(together(done), bytes);
        let came = received(server);
        assert_eq!(came.result().unwrap().bytes as usize, size);
        assert_eq!(together(came), bytes);
    }
}

/// siw reads into one entry only.
#[case]
fn memory_is_gathered_and_scattered(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    for (seed, size) in (1..).zip(SIZES) {
        let bytes = pattern(size, seed);
        let memory = exposed(server, size.max(1));
        let remote = memory.remote().slice(0..size as u64).unwrap();
        let write = SendOperation::Write(remote);
        drop(perform(client, write, gathered(client, &bytes)));
        let read = SendOperation::Read(remote);
        let read = match site.soft {
            Soft::Rxe => together(perform(client, read, scattered(client, size))),
            Soft::Siw => brought(perform(client, read, room(client, size)), size),
        };
        assert_eq!(read, bytes);
        assert_eq!(contents(&memory)[..size], bytes);
    }
}

/// siw invalidates a key on a peer's request; rxe does so only for memory that the
/// kernel registers.
#[case]
fn a_key_is_invalidated(site: &Site) {
    match site.soft {
        Soft::Rxe => keys_stay(site),
        Soft::Siw => keys_go(site),
    }
}

/// The message arrives before its key is refused, which ends the connection. Messages
/// of one or a few packets are enough.
fn keys_stay(site: &Site) {
    for (seed, size) in (1..).zip(SIZES).filter(|(_, size)| *size <= 4096) {
        let pair = roomy(site);
        let (client, server) = ends(&pair);
        let memory = exposed(server, 64);
        let bytes = pattern(size, seed);
        server.post_receive(room(server, size)).unwrap();
        let operation = SendOperation::SendWithInvalidate(memory.remote().key());
        drop(perform(client, operation, sge(client, &bytes)));
        let came = received(server);
        let refused = came.result().unwrap_err();
        assert_eq!(refused.status, WcStatus::REM_INV_REQ_ERR);
        assert_eq!(came.sg_list.into_buffer().unwrap()[..size], bytes);
    }
}

fn keys_go(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    let forgotten = SIZES.map(|size| {
        let memory = exposed(server, 64);
        let bytes = pattern(size, 7);
        server.post_receive(room(server, size)).unwrap();
        let operation = SendOperation::SendWithInvalidate(memory.remote().key());
        drop(perform(client, operation, sge(client, &bytes)));
        let came = received(server);
        // siw reports the key to the kernel's own queues only.
        let done = came.result().unwrap();
        assert_eq!((done.bytes as usize, done.invalidated), (size, None));
        assert_eq!(brought(came, size), bytes);
        memory
    });
    let read = SendOperation::Read(forgotten[0].remote());
    let request = SendRequest::new(read, room(client, 64));
    client.post_send(request).unwrap();
    assert!(sent(client).result().unwrap_err().is_flush());
}

#[case(needs(Datagrams))]
fn immediate_data_arrive_with_sends_and_writes(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    for (seed, size) in (1..).zip(SIZES) {
        let bytes = pattern(size, seed);
        let word = 0x0102_0300 + u32::from(seed);
        server.post_receive(room(server, size)).unwrap();
        let operation = SendOperation::SendWithImmediate(word);
        drop(perform(client, operation, sge(client, &bytes)));
        let came = received(server);
        let done = came.result().unwrap();
        assert_eq!(done.opcode, WcOpcode::RECV);
        assert_eq!((done.immediate, done.bytes as usize), (Some(word), size));
        assert_eq!(brought(came, size), bytes);

        let memory = exposed(server, size.max(1));
        let remote = memory.remote().slice(0..size as u64).unwrap();
        server.post_receive(SgList::NONE).unwrap();
        let operation = SendOperation::WriteWithImmediate(remote, !word);
        drop(perform(client, operation, sge(client, &bytes)));
        let done = received(server).result().unwrap();
        assert_eq!(done.opcode, WcOpcode::RECV_RDMA_WITH_IMM);
        assert_eq!((done.immediate, done.bytes as usize), (Some(!word), size));
        assert_eq!(done.invalidated, None);
        assert_eq!(contents(&memory)[..size], bytes);
    }
}

#[case(needs(Datagrams))]
fn atomics_return_the_old_value(site: &Site) {
    let pair = roomy(site);
    let (client, server) = ends(&pair);
    let memory = exposed(server, 24);
    let remote = memory.remote().slice(8..16).unwrap();
    let word = memory.word(8).unwrap();
    let order = std::sync::atomic::Ordering::SeqCst;
    word.store(5, order);
    for (compare, swap, before, after) in [(5, 7, 5, 7), (5, 9, 7, 7)] {
        let operation = SendOperation::CompareSwap {
            remote,
            compare,
            swap,
        };
        let done = perform(client, operation, room(client, 8));
        assert_eq!(done.result().unwrap().opcode, WcOpcode::COMP_SWAP);
        assert_eq!(brought(done, 8), u64::to_ne_bytes(before));
        assert_eq!(word.load(order), after);
    }
    for (add, before) in [(u64::MAX, 7), (10, 6)] {
        let operation = SendOperation::FetchAdd { remote, add };
        let done = perform(client, operation, room(client, 8));
        assert_eq!(done.result().unwrap().opcode, WcOpcode::FETCH_ADD);
        assert_eq!(brought(done, 8), u64::to_ne_bytes(before));
    }
    assert_eq!(word.load(order), 16);
    let around = contents(&memory);
    assert!(
        around[..8]
            .iter()
            .chain(&around[16..])
            .all(|byte| *byte == 0)
    );
}
