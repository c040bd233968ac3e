//! The side of a queue pair that carries out requests, as rxe's responder.

use std::sync::Arc;

use rdmacm_abi::uverbs::{WcFlags, WcOpcode, WcStatus};
use rdmacm_abi::{AccessFlags, QpType};

use super::format::Format;
use super::memory::{KeyedMemory, MemoryError};
use super::message::{DataMessage, Message, Operation, Reply, Response, Route, With};
use super::queue_pair::{PSN_MASK, QpKey, QueuePair, Receives, is_before, next_psn};
use super::request::Receive;
use super::{Verbs, requester, transition};
use crate::network::Arrival;
use crate::sim_state::SimState;

/// How many requests ago an atomic is forgotten: more than may be outstanding.
const ATOMICS: u32 = 1 << 20;

/// What a request ends with here and at its sender.
#[derive(Debug)]
enum Outcome {
    Replied(Reply),
    /// The sender's request succeeds, and the queue pair fails.
    Last,
    /// The queue pair fails. The sender's request completes with the status.
    Failed(WcStatus),
}

/// A request has arrived.
pub(super) fn receive(state: &mut SimState, arrival: Arrival, message: &Message) {
    let key = QpKey {
        host: arrival.host,
        device: arrival.attached.device,
        number: message.to,
    };
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let is_peer = queue_pair.attr.destination.destination_gid == arrival.source.0;
    let is_reliable = queue_pair.qp_type == QpType::RC;
    if !queue_pair.can_receive() || !is_peer || !is_reliable {
        return;
    }
    let expected = queue_pair.responder.expected_psn;
    let outcome = if is_before(message.psn, expected) {
        match repeat(state, key, message) {
            Some(reply) => Outcome::Replied(reply),
            None => return,
        }
    } else if message.psn == expected {
        let Some(verbs) = state.verbs_of(key) else {
            return;
        };
        execute(verbs, key.number, message)
    } else {
        // One before it was lost: its sender sends both again.
        return;
    };
    let reply = match &outcome {
        Outcome::Replied(reply) => reply.clone(),
        Outcome::Last => Reply::Done,
        Outcome::Failed(status) => Reply::Failed(*status),
    };
    let is_siw = state
        .queue_pair(key)
        .is_some_and(|queue_pair| queue_pair.format == Format::Siw);
    if is_siw && matches!(outcome, Outcome::Replied(Reply::Done)) {
        return;
    }
    let response = Response {
        to: message.from,
        psn: message.psn,
        reply,
    };
    let route = Route {
        source: arrival.destination,
        destination: arrival.source,
    };
    requester::send(state, key, route, DataMessage::Reply(response));
    if matches!(outcome, Outcome::Failed(_) | Outcome::Last) {
        transition::fail(state, key);
    }
}

/// A request that has arrived before: its reply was lost (`duplicate_request`).
fn repeat(state: &mut SimState, key: QpKey, message: &Message) -> Option<Reply> {
    let verbs = state.verbs_of(key)?;
    let queue_pair = verbs.queue_pairs.get(&key.number)?;
    match message.operation {
        Operation::Send { .. } | Operation::Write { .. } => Some(Reply::Done),
        Operation::Read { from, length } => {
            let data = read(verbs, queue_pair.domain, from, length);
            data.ok().map(Reply::Data)
        }
        Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
            let before = queue_pair.responder.atomics.get(&message.psn)?;
            Some(Reply::Data(Arc::clone(before)))
        }
    }
}

fn execute(verbs: &mut Verbs, number: u32, message: &Message) -> Outcome {
    let Some(queue_pair) = verbs.queue_pairs.get(&number) else {
        return Outcome::Failed(WcStatus::REM_OP_ERR);
    };
    let (domain, access) = (queue_pair.domain, queue_pair.attr.access_flags);
    // The queue pair must allow what the memory allows (`check_op_valid`). siw does not ask.
    let is_rxe = queue_pair.format == Format::Rxe;
    if is_rxe && !access.contains(needed(&message.operation)) {
        return Outcome::Failed(WcStatus::REM_INV_REQ_ERR);
    }
    let outcome = match &message.operation {
        Operation::Send { data, with } => receive_data(verbs, number, message, data, *with),
        Operation::Write {
            to,
            data,
            immediate,
        } => {
            let length = data.len();
            let checked = verbs.check(domain, *to, length, AccessFlags::REMOTE_WRITE);
            match (checked, immediate) {
                (Err(_), _) => Outcome::Failed(WcStatus::REM_ACCESS_ERR),
                (Ok(()), None) => write(verbs, domain, *to, data),
                (Ok(()), Some(word)) => {
                    let with = With::Immediate(*word);
                    receive_write(verbs, number, message, (*to, data), with)
                }
            }
        }
        Operation::Read { from, length } => match read(verbs, domain, *from, *length) {
            Ok(data) => Outcome::Replied(Reply::Data(data)),
            Err(_) => Outcome::Failed(WcStatus::REM_ACCESS_ERR),
        },
        Operation::CompareSwap {
            memory,
            compare,
            swap,
        } => atomic(verbs, number, message.psn, *memory, |old| {
            if old == *compare { *swap } else { old }
        }),
        Operation::FetchAdd { memory, add } => atomic(verbs, number, message.psn, *memory, |old| {
            old.wrapping_add(*add)
        }),
    };
    let is_done = !matches!(
        outcome,
        Outcome::Failed(_) | Outcome::Replied(Reply::ReceiverNotReady(_))
    );
    if let Some(queue_pair) = verbs.queue_pairs.get_mut(&number).filter(|_| is_done) {
        queue_pair.responder.expected_psn = next_psn(message.psn);
    }
    outcome
}

fn needed(operation: &Operation) -> AccessFlags {
    match operation {
        Operation::Send { .. } => AccessFlags::empty(),
        Operation::Write { .. } => AccessFlags::REMOTE_WRITE,
        Operation::Read { .. } => AccessFlags::REMOTE_READ,
        Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => AccessFlags::REMOTE_ATOMIC,
    }
}

fn read(
    verbs: &Verbs,
    domain: u32,
    from: KeyedMemory,
    length: u32,
) -> Result<Arc<[u8]>, MemoryError> {
    let length = usize::try_from(length).map_err(|_| MemoryError)?;
    let access = match verbs.format {
        Format::Rxe => AccessFlags::REMOTE_READ,
        // A peer that has the key may read.
        Format::Siw => AccessFlags::empty(),
    };
    verbs.check(domain, from, length, access)?;
    let mut bytes = vec![0; length];
    verbs.read(domain, from, &mut bytes, access)?;
    Ok(bytes.into())
}

fn write(verbs: &Verbs, domain: u32, to: KeyedMemory, data: &[u8]) -> Outcome {
    match verbs.write(domain, to, data, AccessFlags::REMOTE_WRITE) {
        Ok(()) => Outcome::Replied(Reply::Done),
        Err(_) => Outcome::Failed(WcStatus::REM_ACCESS_ERR),
    }
}

fn atomic(
    verbs: &mut Verbs,
    number: u32,
    psn: u32,
    memory: KeyedMemory,
    change: impl FnOnce(u64) -> u64,
) -> Outcome {
    const ALIGNMENT: u64 = 8;
    let Some(domain) = verbs.queue_pairs.get(&number).map(|one| one.domain) else {
        return Outcome::Failed(WcStatus::REM_OP_ERR);
    };
    let access = AccessFlags::REMOTE_ATOMIC;
    let mut bytes = [0; size_of::<u64>()];
    if verbs.read(domain, memory, &mut bytes, access).is_err() {
        return Outcome::Failed(WcStatus::REM_ACCESS_ERR);
    }
    if memory.address % ALIGNMENT != 0 {
        return Outcome::Failed(WcStatus::REM_INV_REQ_ERR);
    }
    let new = change(u64::from_ne_bytes(bytes)).to_ne_bytes();
    if verbs.write(domain, memory, &new, access).is_err() {
        return Outcome::Failed(WcStatus::REM_ACCESS_ERR);
    }
    let before: Arc<[u8]> = Arc::from(&bytes[..]);
    if let Some(queue_pair) = verbs.queue_pairs.get_mut(&number) {
        let atomics = &mut queue_pair.responder.atomics;
        atomics.insert(psn, Arc::clone(&before));
        atomics.retain(|one, _| psn.wrapping_sub(*one) & PSN_MASK < ATOMICS);
    }
    Outcome::Replied(Reply::Data(before))
}

/// A message needs something to receive it into.
fn receive_data(
    verbs: &mut Verbs,
    number: u32,
    message: &Message,
    data: &[u8],
    with: With,
) -> Outcome {
    let Some(queue_pair) = verbs.queue_pairs.get(&number) else {
        return Outcome::Failed(WcStatus::REM_OP_ERR);
    };
    let (domain, timer) = (queue_pair.domain, queue_pair.attr.min_rnr_timer);
    let receive_domain = receive_domain(verbs, queue_pair);
    let is_siw = queue_pair.format == Format::Siw;
    let Some(receive) = next_receive(verbs, number) else {
        if is_siw {
            // iWARP does not send again.
            return Outcome::Failed(WcStatus::REM_OP_ERR);
        }
        return Outcome::Replied(Reply::ReceiverNotReady(timer));
    };
    let scattered = verbs.scatter(receive_domain, &receive.sges, data);
    let (own, outcome) = match (scattered, with) {
        (Err(MemoryError), _) => {
            let own = match receive.has_room(data.len()) {
                _ if !is_siw => WcStatus::LOC_QP_OP_ERR,
                true => WcStatus::GENERAL_ERR,
                false => WcStatus::LOC_LEN_ERR,
            };
            (own, Outcome::Failed(WcStatus::REM_OP_ERR))
        }
        // rxe invalidates only memory that the kernel has registered (`rxe_invalidate_mr`), after
        // the data have arrived.
        (Ok(()), With::Invalidate(_)) if !is_siw => (WcStatus::REM_INV_REQ_ERR, Outcome::Last),
        // siw reports that it does not know the key, and goes on (`siw_rdmap_complete`).
        (Ok(()), With::Invalidate(key)) if !verbs.invalidate(domain, key) => {
            (WcStatus::REM_INV_REQ_ERR, Outcome::Replied(Reply::Done))
        }
        (Ok(()), _) => (WcStatus::SUCCESS, Outcome::Replied(Reply::Done)),
    };
    complete(verbs, number, message, (&receive, own), data.len(), with);
    outcome
}

/// The immediate data of a write takes a receive, whose memory is not used.
fn receive_write(
    verbs: &mut Verbs,
    number: u32,
    message: &Message,
    (to, data): (KeyedMemory, &[u8]),
    with: With,
) -> Outcome {
    let Some(queue_pair) = verbs.queue_pairs.get(&number) else {
        return Outcome::Failed(WcStatus::REM_OP_ERR);
    };
    let (domain, timer) = (queue_pair.domain, queue_pair.attr.min_rnr_timer);
    let Some(receive) = next_receive(verbs, number) else {
        return Outcome::Replied(Reply::ReceiverNotReady(timer));
    };
    let outcome = write(verbs, domain, to, data);
    let status = match outcome {
        Outcome::Failed(status) => status,
        Outcome::Replied(_) | Outcome::Last => WcStatus::SUCCESS,
    };
    complete(verbs, number, message, (&receive, status), data.len(), with);
    outcome
}

fn next_receive(verbs: &mut Verbs, number: u32) -> Option<Receive> {
    let queue_pair = verbs.queue_pairs.get_mut(&number)?;
    let element = match queue_pair.receives {
        Receives::Own(_) => queue_pair.take_own_receive(),
        Receives::Shared(handle) => verbs.take_shared_receive(handle),
    };
    Receive::read(verbs.format, &element?)
}

/// The protection domain of the memory that messages are received into. siw takes that of a shared
/// receive queue (`siw_rx_data`).
fn receive_domain(verbs: &Verbs, queue_pair: &QueuePair) -> u32 {
    let shared = match queue_pair.receives {
        Receives::Shared(handle) if verbs.format == Format::Siw => {
            verbs.shared_receive_queues.get(&handle)
        }
        _ => None,
    };
    shared.map_or(queue_pair.domain, |queue| queue.domain)
}

/// Reports what was received.
fn complete(
    verbs: &mut Verbs,
    number: u32,
    message: &Message,
    (receive, status): (&Receive, WcStatus),
    length: usize,
    with: With,
) {
    let Some(queue_pair) = verbs.queue_pairs.get(&number) else {
        return;
    };
    let mut completion = queue_pair.completion(receive.id, status);
    if status == WcStatus::SUCCESS {
        completion.opcode = match message.operation {
            Operation::Write { .. } => WcOpcode::RECV_RDMA_WITH_IMM,
            _ => WcOpcode::RECV,
        };
        completion.byte_len = u32::try_from(length).unwrap_or(u32::MAX);
        match with {
            // siw reports the key to the kernel's own queues only (`siw_rqe_complete`).
            With::Nothing | With::Invalidate(_) => {}
            With::Immediate(word) => {
                completion.flags = WcFlags::WITH_IMM;
                completion.immediate_or_key = word;
            }
        }
    }
    let queue = queue_pair.receive_cq;
    verbs.complete(queue, &completion, message.is_solicited);
}
