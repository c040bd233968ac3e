//! Changes of a queue pair's state.

use nix::errno::Errno;
use rdmacm_abi::uverbs::{ModifyQp, WcStatus};
use rdmacm_abi::{QpAttrMask, QpState};

use super::queue_pair::{QpKey, QueuePair, Requester, Responder};
use super::request::{Receive, Request};
use super::{Verbs, requester};
use crate::sim_state::SimState;

/// `ib_modify_qp` on rxe.
pub(super) fn modify(state: &mut SimState, key: QpKey, request: &ModifyQp) -> Result<(), Errno> {
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
    if !is_allowed(from, to) {
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

/// The transitions of `qp_state_table`, without those of a drained send queue.
fn is_allowed(from: QpState, to: QpState) -> bool {
    matches!(
        (from, to),
        (_, QpState::RESET | QpState::ERR)
            | (QpState::RESET | QpState::INIT, QpState::INIT)
            | (QpState::INIT, QpState::RTR)
            | (QpState::RTR | QpState::RTS, QpState::RTS)
    )
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
    for ring in [&queue_pair.sends, &queue_pair.receives] {
        ring.set_consumer(ring.producer());
    }
    queue_pair.requester = Requester {
        next_slot: queue_pair.sends.producer(),
        ..Requester::default()
    };
    queue_pair.responder = Responder::default();
}

/// Moves a queue pair to ERR and completes all of its requests.
pub(super) fn fail(state: &mut SimState, key: QpKey) {
    if let Some(queue_pair) = state.queue_pair(key) {
        queue_pair.state = QpState::ERR;
        queue_pair.requester.timer = 0;
        queue_pair.requester.waits_for_receiver = false;
    }
    flush(state, key);
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
        let mut slot = queue_pair.requester.next_slot;
        while slot != queue_pair.sends.producer() {
            let bytes = queue_pair.sends.slot(slot);
            sends.extend(Request::id_of(&bytes));
            slot = queue_pair.sends.next(slot);
        }
        queue_pair.requester.next_slot = slot;
        queue_pair.sends.set_consumer(slot);
        let receives = std::iter::from_fn(|| queue_pair.receives.pop());
        let receives: Vec<_> = receives.filter_map(|bytes| Receive::read(&bytes)).collect();
        let (send_cq, receive_cq) = (queue_pair.send_cq, queue_pair.receive_cq);
        let flushed = |id| queue_pair.completion(id, WcStatus::WR_FLUSH_ERR);
        let sends: Vec<_> = sends.into_iter().map(flushed).collect();
        let receives: Vec<_> = receives.iter().map(|one| flushed(one.id)).collect();
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
