//! The side of a queue pair that sends requests, as rxe's requester and completer.

use std::time::Duration;

use rdmacm_abi::QpState;
use rdmacm_abi::uverbs::{WcFlags, WcStatus};
use rdmacm_core::Gid;

use super::format::Format;
use super::message::{DataMessage, Message, Operation, Reply, Response, Route, With};
use super::queue_pair::{QpKey, QueuePair, is_before, next_psn};
use super::request::Request;
use super::transition;
use crate::kernel_version::KernelVersion;
use crate::network::{Arrival, Packet, Payload};
use crate::sim_state::SimState;
use crate::timer::Timer;

/// `retry_cnt` or `rnr_retry` of a queue pair that tries without end.
const RETRY_FOREVER: u8 = 7;

/// The doorbell: the program has posted requests.
pub(super) fn ring(state: &mut SimState, key: QpKey) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let is_rxe = queue_pair.format == Format::Rxe;
    match queue_pair.state {
        QpState::RTS => {
            let first = read_requests(state, key);
            send_from(state, key, first);
            finish(state, key);
        }
        // siw leaves in the queue what it is given then.
        QpState::ERR if is_rxe => transition::flush(state, key),
        _ => {}
    }
}

/// Takes what was posted; returns the packet sequence number of the first request.
fn read_requests(state: &mut SimState, key: QpKey) -> u32 {
    let Some(verbs) = state.verbs_of(key) else {
        return 0;
    };
    let Some(queue_pair) = verbs.queue_pairs.get_mut(&key.number) else {
        return 0;
    };
    let (format, domain) = (queue_pair.format, queue_pair.domain);
    let (first, mut requests) = (queue_pair.requester.next_psn, Vec::new());
    let posted: Vec<_> = std::iter::from_fn(|| queue_pair.next_request()).collect();
    let mut psn = first;
    for element in posted {
        if let Some(request) = Request::read(verbs, (format, domain), psn, &element) {
            requests.push(request);
            psn = next_psn(psn);
        }
    }
    if let Some(queue_pair) = state.queue_pair(key) {
        queue_pair.requester.next_psn = psn;
        queue_pair.requester.requests.extend(requests);
    }
    first
}

/// Sends the requests that are not complete, from this one on.
fn send_from(state: &mut SimState, key: QpKey, psn: u32) {
    let Some(route) = route(state, key) else {
        return;
    };
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    if queue_pair.requester.waits_for_receiver {
        return;
    }
    let to = queue_pair.attr.destination_qp_number;
    let requests = queue_pair.requester.requests.iter();
    // None is sent behind one that cannot be.
    let sendable = requests.map_while(|request| Some((request, request.operation.as_ref().ok()?)));
    let messages: Vec<_> = sendable
        .filter(|(request, _)| !is_before(request.psn, psn))
        .map(|(request, operation)| Message {
            to,
            from: key.number,
            psn: request.psn,
            is_solicited: request.is_solicited,
            operation: operation.clone(),
        })
        .collect();
    if !messages.is_empty() {
        transmit(state, key, route, messages);
    }
    if fails_at_once(state, key) {
        transition::fail(state, key);
    }
}

fn transmit(state: &mut SimState, key: QpKey, route: Route, messages: Vec<Message>) {
    for message in messages {
        send(state, key, route, DataMessage::Request(message));
    }
    complete_sent(state, key);
    let is_timed = state
        .queue_pair(key)
        .is_some_and(|queue_pair| queue_pair.requester.timer != 0);
    if !is_timed {
        start_timer(state, key);
    }
}

/// Whether a request that cannot be sent, once it is reached, fails its queue pair before it
/// completes, and so is flushed with all others: rxe of later kernels (`rxe_sender`). Elsewhere it
/// completes with its status, after those before it.
fn fails_at_once(state: &mut SimState, key: QpKey) -> bool {
    let version = state.hosts.get(key.host).map(|host| host.version);
    let Some(queue_pair) = state.queue_pair(key) else {
        return false;
    };
    let mut requests = queue_pair.requester.requests.iter();
    queue_pair.format == Format::Rxe
        && version != Some(KernelVersion::Linux6_1)
        && requests.any(|request| request.operation.is_err())
}

/// On iWARP, what TCP has accepted is complete: the peer does not acknowledge it
/// (`siw_qp_sq_process`).
fn complete_sent(state: &mut SimState, key: QpKey) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    if queue_pair.format == Format::Siw {
        let requests = &mut queue_pair.requester.requests;
        for request in requests.iter_mut().filter(|request| !request.fetches()) {
            request.reply.get_or_insert(Reply::Done);
        }
    }
}

/// The addresses of a connected queue pair.
pub(super) fn route(state: &mut SimState, key: QpKey) -> Option<Route> {
    let queue_pair = state.queue_pair(key)?;
    let (own, destination) = (queue_pair.source, queue_pair.attr.destination);
    let host = state.hosts.get(key.host)?;
    let device = host.devices.get(key.device)?;
    Some(Route {
        source: own.or_else(|| device.gid(destination.source_gid_index.into()))?,
        destination: Gid(destination.destination_gid),
    })
}

pub(super) fn send(state: &mut SimState, key: QpKey, route: Route, message: DataMessage) {
    let Some(verbs) = state.verbs_of(key) else {
        return;
    };
    let transport = verbs.format.transport();
    Packet {
        host: key.host,
        source: route.source,
        destination: route.destination,
        payload: Payload::Data(transport, message),
    }
    .send(state);
}

/// Starts the timer of the oldest request. It has `4.096 us * 2^n`; 0 stands for no
/// end.
fn start_timer(state: &mut SimState, key: QpKey) {
    let sequence = state.clock.next_sequence();
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let exponent = queue_pair.attr.timeout & 0x1f;
    if exponent == 0 {
        return;
    }
    queue_pair.requester.timer = sequence;
    let timeout = Duration::from_nanos(4096 << exponent);
    let timer = Timer::DataTimeout { key, sequence };
    state.clock.schedule(timeout, timer);
}

/// No reply has come in time: the requests are sent again, or the oldest fails.
pub(crate) fn time_out(state: &mut SimState, key: QpKey, sequence: u64) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let requester = &mut queue_pair.requester;
    let Some(oldest) = requester.requests.front_mut() else {
        return;
    };
    if requester.timer != sequence {
        return;
    }
    requester.timer = 0;
    if requester.retries == 0 {
        oldest.reply = Some(Reply::Failed(WcStatus::RETRY_EXC_ERR));
        return finish(state, key);
    }
    // `rxe_completer`
    if requester.retries != RETRY_FOREVER {
        requester.retries -= 1;
    }
    let psn = oldest.psn;
    send_from(state, key, psn);
}

/// The receiver may be ready now.
pub(crate) fn receiver_ready(state: &mut SimState, key: QpKey, sequence: u64) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let requester = &mut queue_pair.requester;
    let Some(oldest) = requester.requests.front() else {
        return;
    };
    if requester.timer != sequence || !requester.waits_for_receiver {
        return;
    }
    requester.timer = 0;
    requester.waits_for_receiver = false;
    let psn = oldest.psn;
    send_from(state, key, psn);
}

/// A response has arrived.
pub(super) fn receive(state: &mut SimState, arrival: Arrival, response: &Response) {
    let key = QpKey {
        host: arrival.host,
        device: arrival.attached.device,
        number: response.to,
    };
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let is_peer = queue_pair.attr.destination.destination_gid == arrival.source.0;
    if !queue_pair.can_send() || !is_peer {
        return;
    }
    let psn = response.psn;
    // iWARP ends the connection.
    if queue_pair.format == Format::Siw && matches!(response.reply, Reply::Failed(_)) {
        return transition::fail(state, key);
    }
    let requester = &mut queue_pair.requester;
    // A reply stands for earlier ones that were lost, unless those carry data.
    for request in &mut requester.requests {
        if !is_before(request.psn, psn) {
            break;
        }
        if !request.fetches() {
            request.reply.get_or_insert(Reply::Done);
        }
    }
    let mut requests = requester.requests.iter_mut();
    let Some(request) = requests.find(|request| request.psn == psn) else {
        return finish(state, key);
    };
    if let Reply::ReceiverNotReady(timer) = response.reply {
        finish(state, key);
        return wait_for_receiver(state, key, psn, timer);
    }
    let is_whole = !request.fetches() || !matches!(response.reply, Reply::Done);
    if is_whole && request.reply.is_none() {
        request.reply = Some(response.reply.clone());
    }
    finish(state, key);
}

/// The peer has nothing to receive into (`rxe_completer`, RNR NAK).
fn wait_for_receiver(state: &mut SimState, key: QpKey, psn: u32, timer: u8) {
    let sequence = state.clock.next_sequence();
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let requester = &mut queue_pair.requester;
    let oldest = requester.requests.front_mut();
    let Some(oldest) = oldest.filter(|oldest| oldest.psn == psn) else {
        return;
    };
    if requester.rnr_retries == 0 {
        oldest.reply = Some(Reply::Failed(WcStatus::RNR_RETRY_EXC_ERR));
        return finish(state, key);
    }
    if requester.rnr_retries != RETRY_FOREVER {
        requester.rnr_retries -= 1;
    }
    requester.waits_for_receiver = true;
    requester.timer = sequence;
    let ready = Timer::ReceiverReady { key, sequence };
    // The field has five bits.
    state.clock.schedule(rnr_delay(timer & 0x1f), ready);
}

/// Completes requests in their order, as far as they have ended.
fn finish(state: &mut SimState, key: QpKey) {
    let mut has_finished = false;
    loop {
        let Some(queue_pair) = state.queue_pair(key) else {
            return;
        };
        let Some(oldest) = queue_pair.requester.requests.front() else {
            break;
        };
        if oldest.reply.is_none() && oldest.operation.is_ok() {
            break;
        }
        let Some(request) = queue_pair.requester.requests.pop_front() else {
            break;
        };
        has_finished = true;
        let status = complete(state, key, &request);
        if status != WcStatus::SUCCESS {
            return transition::fail(state, key);
        }
    }
    if has_finished {
        reset_retries(state, key);
    }
}

/// The peer responds: retries begin anew.
fn reset_retries(state: &mut SimState, key: QpKey) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let QueuePair {
        requester, attr, ..
    } = queue_pair;
    requester.retries = attr.retry_count;
    requester.rnr_retries = attr.rnr_retry;
    if requester.waits_for_receiver {
        return;
    }
    requester.timer = 0;
    if !requester.requests.is_empty() {
        start_timer(state, key);
    }
}

/// Reports the end of a request, and makes room for another.
fn complete(state: &mut SimState, key: QpKey, request: &Request) -> WcStatus {
    let Some(verbs) = state.verbs_of(key) else {
        return WcStatus::SUCCESS;
    };
    let Some(domain) = verbs.queue_pairs.get(&key.number).map(|one| one.domain) else {
        return WcStatus::SUCCESS;
    };
    let status = match (&request.operation, &request.reply) {
        (Err(status), _) | (_, Some(Reply::Failed(status))) => *status,
        (_, Some(Reply::Data(data))) => {
            let written = verbs.scatter(domain, &request.sges, data);
            written.map_or(WcStatus::LOC_PROT_ERR, |()| WcStatus::SUCCESS)
        }
        _ => WcStatus::SUCCESS,
    };
    let Some(queue_pair) = verbs.queue_pairs.get_mut(&key.number) else {
        return WcStatus::SUCCESS;
    };
    queue_pair.release_request();
    let is_success = status == WcStatus::SUCCESS;
    if is_success && !request.is_signaled && !queue_pair.signal_all {
        return status;
    }
    let mut completion = queue_pair.completion(request.id, status);
    if is_success {
        completion.opcode = request.opcode;
        completion.byte_len = request.length;
        if has_immediate(request) {
            completion.flags = WcFlags::WITH_IMM;
        }
    }
    let queue = queue_pair.send_cq;
    verbs.complete(queue, &completion, false);
    status
}

fn has_immediate(request: &Request) -> bool {
    matches!(
        request.operation,
        Ok(Operation::Send {
            with: With::Immediate(_),
            ..
        } | Operation::Write {
            immediate: Some(_),
            ..
        })
    )
}

/// How long a timer of this number takes. Source: IBTA Vol 1, table 46.
fn rnr_delay(timer: u8) -> Duration {
    let tens_of_us: u64 = match timer {
        0 => 65536,
        1 => 1,
        // 0.02 ms and 0.03 ms, then each pair is twice the one before.
        even if even % 2 == 0 => 2 << (even / 2 - 1),
        odd => 3 << (odd / 2 - 1),
    };
    Duration::from_micros(10 * tens_of_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delays_are_those_of_the_architecture() {
        let delays = [0, 1, 2, 3, 4, 5, 6, 7, 12, 30, 31].map(|timer| rnr_delay(timer).as_micros());
        assert_eq!(
            delays,
            [655_360, 10, 20, 30, 40, 60, 80, 120, 640, 327_680, 491_520]
        );
    }
}
