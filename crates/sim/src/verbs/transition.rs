//! Changes of a queue pair's state.

use nix::errno::Errno;
use rdmacm_abi::uverbs::{
    AsyncEventKind, ModifyQp, QpDestination, WcOpcode, WcStatus, WorkCompletion,
};
use rdmacm_abi::{QpAttrMask, QpState};

use super::command::ContextKey;
use super::format::Format;
use super::queue_pair::{QpKey, QueuePair, Receives, Requester, Responder};
use super::request::{Receive, Request};
use super::state_table::is_allowed;
use super::{Verbs, requester};
use crate::device::ip_gid;
use crate::iwarp::{self, IwConnection};
use crate::kernel_version::KernelVersion;
use crate::sim_state::SimState;

/// `ib_modify_qp`.
pub(super) fn modify(state: &mut SimState, key: QpKey, request: &ModifyQp) -> Result<(), Errno> {
    let queue_pair = state.queue_pair(key).ok_or(Errno::EINVAL)?;
    if queue_pair.format == Format::Siw {
        return modify_siw(state, key, request);
    }
    check_paths(state, key, request)?;
    let queue_pair = state.queue_pair(key).ok_or(Errno::EINVAL)?;
    let (from, mask) = (queue_pair.state, request.mask);
    if mask.contains(QpAttrMask::CUR_STATE) && from.number() != request.current_qp_state.into() {
        return Err(Errno::EINVAL);
    }
    let to = if mask.contains(QpAttrMask::STATE) {
        QpState::new(request.qp_state.into())
    } else {
        from
    };
    if !is_allowed(from, to, mask) {
        return Err(Errno::EINVAL);
    }
    store(queue_pair, request);
    match to {
        QpState::RESET => reset(queue_pair),
        QpState::RTR => queue_pair.responder.expected_psn = queue_pair.attr.rq_psn,
        QpState::RTS if from != QpState::RTS => {
            let QueuePair {
                requester, attr, ..
            } = queue_pair;
            requester.next_psn = attr.sq_psn;
            requester.retries = attr.retry_count;
            requester.rnr_retries = attr.rnr_retry;
        }
        QpState::ERR => {
            fail(state, key);
            return Ok(());
        }
        _ => {}
    }
    queue_pair.state = to;
    if to == QpState::RTS {
        // What was posted before.
        requester::ring(state, key);
    }
    Ok(())
}

/// `rdma_fill_sgid_attr`: a path of RoCE is global, and begins at a GID of the port. Only
/// InfiniBand has alternate paths (`_ib_modify_qp`).
fn check_paths(state: &SimState, key: QpKey, request: &ModifyQp) -> Result<(), Errno> {
    let host = state.hosts.get(key.host);
    let device = host.and_then(|host| host.devices.get(key.device));
    let device = device.ok_or(Errno::EINVAL)?;
    let check = |path: &QpDestination| {
        if path.is_global == 0 {
            return Err(Errno::EINVAL);
        }
        let gid = device.gid(path.source_gid_index.into());
        gid.map(|_| ()).ok_or(Errno::ENODATA)
    };
    if request.mask.contains(QpAttrMask::AV) {
        check(&request.destination)?;
    }
    if request.mask.contains(QpAttrMask::ALT_PATH) {
        check(&request.alternate_destination)?;
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// `siw_verbs_modify_qp`: the kernel moves the queue pair with its connection, and the
/// program can only end it.
fn modify_siw(state: &mut SimState, key: QpKey, request: &ModifyQp) -> Result<(), Errno> {
    let queue_pair = state.queue_pair(key).ok_or(Errno::EINVAL)?;
    if request.mask.contains(QpAttrMask::STATE) {
        match QpState::new(request.qp_state.into()) {
            // Either ends the connection.
            QpState::ERR | QpState::SQD => fail(state, key),
            // Changes nothing.
            QpState::RESET | QpState::INIT | QpState::RTR => {}
            _ => return Err(Errno::EINVAL),
        }
    } else if request.mask.contains(QpAttrMask::ACCESS_FLAGS) {
        queue_pair.attr.access_flags = request.access_flags;
    }
    Ok(())
}

/// Sets the attributes that the mask names.
fn store(queue_pair: &mut QueuePair, request: &ModifyQp) {
    let attr = &mut queue_pair.attr;
    macro_rules! store {
        ($($bit:ident: $($field:ident),+;)+) => {$(
            if request.mask.contains(QpAttrMask::$bit) {
                $(attr.$field = request.$field;)+
            }
        )+};
    }
    store! {
        ACCESS_FLAGS: access_flags;
        PKEY_INDEX: pkey_index;
        PORT: port_number;
        QKEY: qkey;
        AV: destination;
        PATH_MTU: path_mtu;
        TIMEOUT: timeout;
        RETRY_CNT: retry_count;
        RNR_RETRY: rnr_retry;
        RQ_PSN: rq_psn;
        SQ_PSN: sq_psn;
        MAX_QP_RD_ATOMIC: max_rd_atomic;
        MAX_DEST_RD_ATOMIC: max_destination_rd_atomic;
        MIN_RNR_TIMER: min_rnr_timer;
        DEST_QPN: destination_qp_number;
    }
}

/// Forgets all requests.
fn reset(queue_pair: &mut QueuePair) {
    release_requests(queue_pair);
    while queue_pair.take_own_receive().is_some() {}
    queue_pair.requester = Requester {
        next: queue_pair.requester.next,
        oldest: queue_pair.requester.oldest,
        ..Requester::default()
    };
    queue_pair.responder = Responder {
        received: queue_pair.responder.received,
        ..Responder::default()
    };
}

/// Releases the slots of all requests; returns those that were not read.
fn release_requests(queue_pair: &mut QueuePair) -> Vec<Vec<u8>> {
    let unread: Vec<_> = std::iter::from_fn(|| queue_pair.next_request()).collect();
    while queue_pair.requester.oldest != queue_pair.requester.next {
        queue_pair.release_request();
    }
    unread
}

/// Moves a queue pair to ERR and completes all of its requests. An iWARP connection ends
/// with it.
pub(crate) fn fail(state: &mut SimState, key: QpKey) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let before = std::mem::replace(&mut queue_pair.state, QpState::ERR);
    queue_pair.requester.timer = 0;
    queue_pair.requester.waits_for_receiver = false;
    let is_siw = queue_pair.format == Format::Siw;
    flush(state, key);
    if before == QpState::ERR {
        return;
    }
    if is_siw {
        iwarp::end_connection_of(state, key);
    } else {
        report_last_receive(state, key);
    }
}

/// A queue pair in ERR takes no more from its shared receive queue, which rxe of later kernels
/// reports (`flush_recv_queue`).
fn report_last_receive(state: &mut SimState, key: QpKey) {
    let version = state.hosts.get(key.host).map(|host| host.version);
    let Some(verbs) = state.verbs_of(key) else {
        return;
    };
    let Some(queue_pair) = verbs.queue_pairs.get(&key.number) else {
        return;
    };
    let is_shared = matches!(queue_pair.receives, Receives::Shared(_));
    if is_shared && version != Some(KernelVersion::Linux6_1) {
        let (context, element) = (queue_pair.context, queue_pair.user_handle);
        verbs.report(context, AsyncEventKind::QP_LAST_WQE_REACHED, element);
    }
}

/// Ends the iWARP connections of the queue pairs of a context.
pub(super) fn end_connections_of(state: &mut SimState, context: ContextKey) {
    let Some(verbs) = state.verbs(context.host, context.device) else {
        return;
    };
    if verbs.format == Format::Siw {
        for number in verbs.queue_pairs_of(context.serial) {
            fail(state, context.queue_pair(number));
        }
    }
}

/// Moves a queue pair of siw to RTS for its connection.
pub(crate) fn connect(state: &mut SimState, key: QpKey, connection: &IwConnection) {
    let Some(queue_pair) = state.queue_pair(key) else {
        return;
    };
    let peer = ip_gid(connection.peer);
    queue_pair.source = Some(ip_gid(connection.source));
    let attr = &mut queue_pair.attr;
    attr.destination.destination_gid = peer.0;
    attr.destination_qp_number = connection.peer_qp_number;
    // siw reports the depths swapped (`siw_query_qp`).
    attr.max_rd_atomic = connection.depths.inbound;
    attr.max_destination_rd_atomic = connection.depths.outbound;
    queue_pair.state = QpState::RTS;
    // What was posted before.
    requester::ring(state, key);
}

/// Completes all requests of a queue pair in ERR.
pub(super) fn flush(state: &mut SimState, key: QpKey) {
    if let Some(verbs) = state.verbs_of(key) {
        verbs.flush(key.number);
    }
}

impl Verbs {
    /// Completes all requests of a queue pair in ERR.
    pub(super) fn flush(&mut self, number: u32) {
        let Some(queue_pair) = self.queue_pairs.get_mut(&number) else {
            return;
        };
        let posted = std::mem::take(&mut queue_pair.requester.requests);
        let mut sends: Vec<_> = posted.iter().map(|request| request.id).collect();
        let format = queue_pair.format;
        let unread = release_requests(queue_pair);
        sends.extend(
            unread
                .iter()
                .filter_map(|bytes| Request::id_of(format, bytes)),
        );
        let receives: Vec<_> = std::iter::from_fn(|| queue_pair.take_own_receive()).collect();
        let receives = receives
            .iter()
            .filter_map(|bytes| Receive::read(format, bytes));
        let receives: Vec<_> = receives.collect();
        let (send_cq, receive_cq) = (queue_pair.send_cq, queue_pair.receive_cq);
        let flushed = |id| queue_pair.completion(id, WcStatus::WR_FLUSH_ERR);
        let sends: Vec<_> = sends.into_iter().map(flushed).collect();
        let receives = receives.iter().map(|one| WorkCompletion {
            opcode: WcOpcode::RECV,
            ..flushed(one.id)
        });
        let receives: Vec<_> = receives.collect();
        for completion in sends {
            self.complete(send_cq, &completion, false);
        }
        for completion in receives {
            self.complete(receive_cq, &completion, true);
        }
    }

    /// Completes what was posted to queue pairs in ERR that report to this queue.
    pub(super) fn flush_reporting_to(&mut self, queue: u32) {
        let failed = self.queue_pairs.iter().filter(|(_, one)| {
            let reports = one.send_cq == queue || one.receive_cq == queue;
            reports && one.state == QpState::ERR
        });
        let failed: Vec<_> = failed.map(|(number, _)| *number).collect();
        for number in failed {
            self.flush(number);
        }
    }
}
