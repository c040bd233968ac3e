//! Random operations, compared with a model of both sides' memory.
//!
//! Both sides send, write, read and, where supported, use atomics on each other's
//! memory, in batches, signalled or not. Only the peer changes a side's memory, so the
//! peer knows what a read returns.

use std::collections::VecDeque;
use std::process::Command;

use rdmacm_tests::{PATIENCE, Random, Site, Soft, seeds};
use rdmacm_verbs::{
    Completion, CompletionInfo, QpCaps, QueuePair, RemoteAccessRegion, RemoteMemory, SendOperation,
    SendRequest, SgList, Sge, WorkId,
};

use super::{contents, exposed, filled, pattern};
use rdmacm_tests_macros::case;

const CAPS: QpCaps = QpCaps {
    max_send_wr: 24,
    max_recv_wr: 24,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};
const MEMORY: usize = 1 << 17;
/// The part that is written to; the rest is for constant data.
const CHANGED: usize = MEMORY / 2;
/// The longest message, for which each receive request has space.
const LONGEST: usize = 10_000;
const ROUNDS: usize = 40;

#[case]
fn memory_equals_the_model(site: &Site) {
    for seed in seeds(10) {
        run(site, seed);
    }
}

/// One side, and its model.
struct End<'a> {
    queue_pair: &'a QueuePair,
    /// The memory that its peer changes.
    memory: RemoteAccessRegion,
    /// The contents of its peer's memory once all requests are complete.
    model: Vec<u8>,
    /// Outstanding requests.
    outstanding: VecDeque<Posted>,
    /// Messages on the way to it, with their immediate data.
    due: VecDeque<(Vec<u8>, Option<u32>)>,
    receives: usize,
}

/// A posted request.
struct Posted {
    work: WorkId,
    signaled: bool,
    /// The bytes that it returns.
    brings: Option<Vec<u8>>,
    /// For the failure message.
    what: String,
}

/// A random request, and its effect on the model.
struct Made<'a> {
    request: SendRequest<'a>,
    brings: Option<Vec<u8>>,
    message: Option<(Vec<u8>, Option<u32>)>,
}

fn run(site: &Site, seed: u64) {
    let [client, server] = [(); 2].map(|()| site.queue_pair_with(CAPS));
    let pair = site.pair_of(client, server);
    let mut ends = [&pair.client, &pair.server].map(|side| End {
        queue_pair: &side.queue_pair,
        memory: exposed(&side.queue_pair, MEMORY),
        model: vec![0; MEMORY],
        outstanding: VecDeque::new(),
        due: VecDeque::new(),
        receives: 0,
    });
    let mut random = Random::new(seed);
    for end in &mut ends {
        end.memory.write(CHANGED, &pattern(MEMORY - CHANGED, 1));
        end.model[CHANGED..].copy_from_slice(&pattern(MEMORY - CHANGED, 1));
    }
    for _ in 0..ROUNDS {
        for _ in 0..2 {
            let [near, far] = &mut ends;
            post(site, &mut random, near, far);
            if random.below(3) == 0 {
                settle(near);
                receive(far);
            }
            ends.swap(0, 1);
        }
    }
    let [near, far] = &mut ends;
    finish(site, &mut random, near, far);
    finish(site, &mut random, far, near);
    assert_eq!(contents(&far.memory), near.model, "seed {seed}");
    assert_eq!(contents(&near.memory), far.model, "seed {seed}");
}

/// Posts several requests at once, as many as both sides have space for.
fn post(site: &Site, random: &mut Random, near: &mut End<'_>, far: &mut End<'_>) {
    let most = CAPS.max_send_wr as usize - 1;
    let free = most.saturating_sub(near.outstanding.len());
    let batch = random.place(6).min(free);
    let far_room = CAPS.max_recv_wr as usize - far.receives;
    let mut inline: Vec<Vec<u8>> = Vec::new();
    inline.resize_with(batch, || bytes(random, 65));
    let mut made = Vec::new();
    for bytes in &inline {
        let messages = made.iter().filter(|one: &&Made<'_>| one.message.is_some());
        let messages = messages.count() < far_room;
        made.push(make(site, random, near, far, messages, bytes));
    }
    let mut requests = Vec::new();
    let mut notes = Vec::new();
    let mut messages = Vec::new();
    for one in made {
        let last = near.outstanding.len() + notes.len() + 1 == most;
        let signaled = last || random.below(3) > 0;
        let request = if signaled {
            one.request
        } else {
            one.request.unsignaled()
        };
        notes.push((signaled, one.brings, format!("{request:?}")));
        requests.push(Some(request));
        messages.extend(one.message);
    }
    for message in messages {
        let room = room(random, far.queue_pair);
        far.queue_pair.post_receive(room).unwrap();
        far.receives += 1;
        far.due.push_back(message);
    }
    let works = near.queue_pair.post_sends(&mut requests).unwrap();
    for (work, (signaled, brings, what)) in works.zip(notes) {
        near.outstanding.push_back(Posted {
            work,
            signaled,
            brings,
            what,
        });
    }
}

fn bytes(random: &mut Random, limit: usize) -> Vec<u8> {
    let length = random.place(limit);
    let mut bytes = vec![0; length];
    for bytes in bytes.chunks_mut(8) {
        bytes.copy_from_slice(&random.number().to_ne_bytes()[..bytes.len()]);
    }
    bytes
}

/// Splits bytes into entries, some of which may be empty.
fn cut(random: &mut Random, queue_pair: &QueuePair, bytes: &[u8], most: usize) -> SgList {
    let mut sg_list = Vec::new();
    let mut rest = bytes;
    for left in (0..=random.place(most)).rev() {
        let length = if left == 0 {
            rest.len()
        } else {
            random.place(rest.len() + 1)
        };
        let (first, behind) = rest.split_at(length);
        rest = behind;
        let before = random.place(5);
        let mut around = vec![0xaa; before];
        around.extend(first);
        let buffer = filled(queue_pair, &around);
        sg_list.push(buffer.slice(before..around.len()).unwrap());
    }
    sg_list.into()
}

fn room(random: &mut Random, queue_pair: &QueuePair) -> SgList {
    cut(random, queue_pair, &[0; LONGEST], 4)
}

fn joined(sg_list: SgList, length: usize) -> Vec<u8> {
    let parts = sg_list.into_iter().flat_map(|sge: Sge| {
        let length = sge.len();
        let buffer = sge.into_buffer().unwrap();
        let behind = buffer.len();
        // An entry ends at the end of its buffer, except for empty buffers.
        let start = behind.saturating_sub(length);
        if length == 0 {
            Vec::new()
        } else {
            buffer[start..].to_vec()
        }
    });
    parts.take(length).collect()
}

/// A random operation, and the model of the peer's memory after it.
fn make<'a>(
    site: &Site,
    random: &mut Random,
    near: &mut End<'_>,
    far: &End<'_>,
    messages: bool,
    inline: &'a [u8],
) -> Made<'a> {
    let limit = if random.below(8) == 0 { LONGEST } else { 2000 };
    let payload = bytes(random, limit);
    let kinds = match site.soft {
        Soft::Rxe => 8,
        Soft::Siw => 5,
    };
    let remote = |start: usize, length: usize| {
        let range = start as u64..(start + length) as u64;
        far.memory.remote().slice(range).unwrap()
    };
    let start = random.place(CHANGED - LONGEST);
    let word = u32::try_from(random.below(1 << 32)).unwrap();
    let queue_pair = near.queue_pair;
    let how = random.below(4);
    let made = |request: SendRequest<'a>, brings, message| Made {
        request: match how {
            0 if site.soft == Soft::Rxe => request.fence(),
            1 => request.solicited(),
            _ => request,
        },
        brings,
        message,
    };
    match (random.below(kinds), messages) {
        (0, true) => {
            let sg_list = cut(random, queue_pair, &payload, 4);
            let request = SendRequest::new(SendOperation::Send, sg_list);
            made(request, None, Some((payload, None)))
        }
        (1, true) => {
            let request = SendRequest::inline(SendOperation::Send, inline);
            made(request, None, Some((inline.to_vec(), None)))
        }
        (2, _) => {
            near.model[start..start + inline.len()].copy_from_slice(inline);
            let operation = SendOperation::Write(remote(start, inline.len()));
            made(SendRequest::inline(operation, inline), None, None)
        }
        (3, _) => {
            let length = match site.soft {
                Soft::Rxe => payload.len(),
                // siw may answer shorter reads with wrong bytes if they span two pages.
                Soft::Siw => payload.len().max(64),
            };
            let most = match site.soft {
                Soft::Rxe => 4,
                Soft::Siw => 1,
            };
            let zeros = vec![0; length];
            let sg_list = cut(random, queue_pair, &zeros, most);
            let start = match site.soft {
                Soft::Rxe => start,
                // A write overtakes an earlier read.
                Soft::Siw => CHANGED + start % (MEMORY - CHANGED - LONGEST),
            };
            let brings = near.model[start..start + length].to_vec();
            let operation = SendOperation::Read(remote(start, length));
            made(SendRequest::new(operation, sg_list), Some(brings), None)
        }
        (5, true) => {
            let sg_list = cut(random, queue_pair, &payload, 4);
            let request = SendRequest::new(SendOperation::SendWithImmediate(word), sg_list);
            made(request, None, Some((payload, Some(word))))
        }
        (6, true) => {
            near.model[start..start + payload.len()].copy_from_slice(&payload);
            let sg_list = cut(random, queue_pair, &payload, 4);
            let remote = remote(start, payload.len());
            let operation = SendOperation::WriteWithImmediate(remote, word);
            let message = Some((Vec::new(), Some(word)));
            made(SendRequest::new(operation, sg_list), None, message)
        }
        (7, _) => {
            let at = start / 8 * 8;
            let place = &mut near.model[at..at + 8];
            let before = u64::from_ne_bytes((&*place).try_into().unwrap());
            let (operation, after) = atomic(remote(at, 8), before, word);
            place.copy_from_slice(&after.to_ne_bytes());
            let sg_list = SgList::from(filled(queue_pair, &[0; 8]));
            let brings = Some(before.to_ne_bytes().to_vec());
            made(SendRequest::new(operation, sg_list), brings, None)
        }
        _ => {
            near.model[start..start + payload.len()].copy_from_slice(&payload);
            let sg_list = cut(random, queue_pair, &payload, 4);
            let operation = SendOperation::Write(remote(start, payload.len()));
            made(SendRequest::new(operation, sg_list), None, None)
        }
    }
}

/// An atomic, and the memory's value after it.
fn atomic(remote: RemoteMemory, before: u64, word: u32) -> (SendOperation, u64) {
    let swap = u64::from(word);
    let compare = match word % 3 {
        0 => {
            let operation = SendOperation::FetchAdd { remote, add: swap };
            return (operation, before.wrapping_add(swap));
        }
        1 => before,
        _ => before ^ 1,
    };
    let operation = SendOperation::CompareSwap {
        remote,
        compare,
        swap,
    };
    (operation, if compare == before { swap } else { before })
}

/// Takes the completions of its send queue up to a signalled one, if one is outstanding.
fn settle(end: &mut End<'_>) {
    let signaled = end.outstanding.iter().position(|one| one.signaled);
    for _ in 0..signaled.map_or(0, |before| before + 1) {
        settle_one(end);
    }
}

fn settle_one(end: &mut End<'_>) {
    let queue = end.queue_pair.send_cq();
    let done = queue.next(PATIENCE).unwrap().unwrap();
    let result = done.result();
    let Completion { work, sg_list, .. } = done;
    if let Err(error) = result {
        let ways: Vec<_> = end.outstanding.iter().map(|one| &one.what).collect();
        let kernel = Command::new("dmesg").output().unwrap().stdout;
        let kernel = String::from_utf8_lossy(&kernel);
        panic!("{error}, of {ways:#?}, and of the kernel:\n{kernel}");
    }
    let posted = end.outstanding.pop_front().unwrap();
    assert_eq!(work, posted.work);
    if let Some(brings) = posted.brings {
        let brought = joined(sg_list, brings.len());
        assert!(brought == brings, "{}", posted.what);
    }
}

/// Takes one message, if one is expected.
fn receive(end: &mut End<'_>) {
    let Some((message, word)) = end.due.pop_front() else {
        return;
    };
    let queue = end.queue_pair.recv_cq();
    let came = queue.next(PATIENCE).unwrap().unwrap();
    let CompletionInfo {
        bytes, immediate, ..
    } = came.result().unwrap();
    assert_eq!(immediate, word);
    if !message.is_empty() {
        assert_eq!(bytes as usize, message.len());
    }
    assert!(joined(came.sg_list, message.len()) == message);
    end.receives -= 1;
}

fn finish(site: &Site, random: &mut Random, near: &mut End<'_>, far: &mut End<'_>) {
    while !far.due.is_empty() {
        receive(far);
    }
    while near.outstanding.iter().any(|one| one.signaled) {
        settle(near);
    }
    // The remaining requests were not signalled; a last request completes them.
    let length = match site.soft {
        Soft::Rxe => 0,
        // A busy siw answers a read of no bytes with the data that it sent last.
        Soft::Siw => 64,
    };
    let sg_list = cut(random, near.queue_pair, &vec![0; length], 1);
    let range = CHANGED as u64..(CHANGED + length) as u64;
    let operation = SendOperation::Read(far.memory.remote().slice(range).unwrap());
    let last = SendRequest::new(operation, sg_list);
    let what = format!("{last:?}");
    let work = near.queue_pair.post_send(last).unwrap();
    near.outstanding.push_back(Posted {
        work,
        signaled: true,
        brings: Some(near.model[CHANGED..][..length].to_vec()),
        what,
    });
    settle(near);
    assert!(near.outstanding.is_empty());
}
