//! Queue pairs.

use std::sync::Arc;

use parking_lot::Mutex;
use rdmacm_abi::uverbs::{CommandNumber, QueryQp};
use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType, Transport};
use zerocopy::FromZeros as _;

use crate::completion::WorkId;
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::token::Token;
use crate::work_queue::{QpStatus, ReceiveQueue, SendQueue, StatusBefore};

mod admission;
mod attributes;
mod connect;
mod multicast;
mod options;
mod post;
mod queued_send;
mod reset;
#[cfg(test)]
mod tests;

pub(crate) use attributes::from_query;

pub use options::{QpCaps, QpOptions};
pub use queued_send::QueuedSend;

/// Queue pair numbers have 24 bits.
const LAST_NUMBER: u32 = 0xff_ffff;

/// A queue pair. Dropping it destroys it in the kernel, before the objects it was
/// created from, and frees the memory of outstanding requests;
/// [`destroy`](Self::destroy) returns that memory instead.
///
/// A failed request moves a connected queue pair to the error state: outstanding requests
/// complete as flushed, and posting fails.
///
/// On siw, dropping a queue pair blocks while its connection waits for the peer's answer,
/// up to 10 s. A queue pair of siw serves one connection: after a rejection or a
/// disconnect it stays in the error state, although [`modify`](Self::modify) succeeds.
#[derive(Debug)]
#[doc(alias = "ibv_qp", alias = "ibv_destroy_qp", alias = "rdma_destroy_qp")]
pub struct QueuePair {
    handle: u32,
    number: u32,
    token: Token,
    qp_type: QpType,
    caps: QpCaps,
    protection_domain: ProtectionDomain,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    shared: Option<SharedReceiveQueue>,
    qp_status: Arc<QpStatus>,
    /// Held by a move that refuses requests.
    stopping: Mutex<()>,
    sends: SendQueue,
    receives: Option<ReceiveQueue>,
    destroyed: bool,
}

impl QueuePair {
    /// Options for a queue pair of this type.
    #[must_use]
    pub fn options(qp_type: QpType) -> QpOptions {
        QpOptions::new(qp_type)
    }

    /// Its number, 24 bits.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its transport service.
    #[must_use]
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// Its capacities: at least those asked for. Linux 6.1 reports those asked for even if
    /// rxe has more.
    #[must_use]
    #[doc(alias = "ibv_qp_cap")]
    pub fn caps(&self) -> QpCaps {
        self.caps
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.protection_domain.context()
    }

    /// Its protection domain.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        &self.protection_domain
    }

    /// The completion queue of its send requests.
    #[must_use]
    pub fn send_cq(&self) -> &CompletionQueue {
        &self.send_cq
    }

    /// The completion queue of its receive requests.
    #[must_use]
    pub fn recv_cq(&self) -> &CompletionQueue {
        &self.recv_cq
    }

    /// Modifies attributes: `attr` holds the values, `mask` selects them;
    /// [`QpAttr::mask`] is ignored. `ibv_modify_qp(3)` says which may change in which
    /// state. siw uses only the state and the access flags.
    ///
    /// Moving to ERR flushes all requests; posting fails from then on. If the queue pair has failed
    /// by itself, rxe flushes later receive requests only after this move. On siw, all flushed
    /// requests can be polled when this returns; requests that were posted after the connection had
    /// ended complete only by this move, and without a notification.
    ///
    /// Moving to RESET discards requests, which then do not complete, and completions that were not
    /// polled; posting fails until the move has ended. The memory of the requests stays with the
    /// queue pair until it is destroyed, because rxe of Linux 6.1 may still write to it. siw
    /// accepts RESET and changes nothing: requests complete as before, and a queue pair in the
    /// error state stays there.
    ///
    /// During any move, siw ignores data that arrives until more data arrives
    /// (`siw_qp_llp_data_ready`), and rejects requests that are posted meanwhile, after which the queue
    /// pair accepts no more. So do not post while another thread modifies it.
    /// Source: `ibv_modify_qp(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an invalid state, MTU or path migration state;
    /// [`Error::Command`], with `EINVAL` for attributes that the transition does not
    /// allow. Moving to RESET takes two commands on rxe: if the second one fails, the requests are
    /// discarded, and posting fails until the move is repeated with success.
    #[doc(alias = "ibv_modify_qp")]
    pub fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        let operation = Operation::ModifyQueuePair {
            number: self.number,
            state: mask.contains(QpAttrMask::STATE).then_some(attr.qp_state),
            mask,
        };
        let request = attributes::to_modify(self.handle, attr, mask)
            .map_err(|reason| Error::invalid(operation, reason))?;
        let state = mask.contains(QpAttrMask::STATE).then_some(attr.qp_state);
        let is_reset = state.is_some_and(|state| self.is_reset_by(state));
        let stops = is_reset || state.is_some_and(|state| self.fails_in(state));
        if self.context().is_in_child() {
            // A thread of the parent may have been posting at the fork.
            return Err(self.context().closed_error());
        }
        // One at a time: one that fails accepts requests again.
        let _stopping = stops.then(|| self.stopping.lock());
        let before = stops.then(|| self.refuse_requests());
        if let Err(error) = self.context().uverbs().ask(operation, &request) {
            if let Some(before) = &before {
                self.qp_status.end_refusing(before);
            }
            return Err(error);
        }
        if is_reset {
            return self.reset(operation, &request);
        }
        if let Some(state) = state {
            self.moved(state);
        }
        Ok(())
    }

    /// Moves it to ERR, see [`modify`](Self::modify).
    ///
    /// # Errors
    /// [`Error::Command`].
    #[doc(alias = "IBV_QPS_ERR")]
    pub fn move_to_error(&self) -> Result<()> {
        let mut attr = QpAttr::new_zeroed();
        attr.qp_state = QpState::ERR;
        self.modify(&attr, QpAttrMask::STATE)
    }

    /// Whether posting fails in this state. An iWARP connection cannot leave SQD again.
    fn fails_in(&self, state: QpState) -> bool {
        let drained = self.context().transport() == Transport::IWarp && state == QpState::SQD;
        state == QpState::ERR || drained
    }

    /// Refuses requests from now on, and waits for those that are being posted. The device flushes
    /// what is there when the state changes, and rxe no receive request that comes later. A reset
    /// discards what is there, and what came later would go to the next peer.
    fn refuse_requests(&self) -> StatusBefore {
        let before = self.qp_status.begin_refusing();
        self.sends.wait_for_posters();
        if let Some(receives) = &self.receives {
            receives.wait_for_posters();
        }
        before
    }

    /// Processes the consequences of a transition that is no reset.
    fn moved(&self, state: QpState) {
        if self.fails_in(state) {
            self.qp_status.set_broken();
        }
        if state == QpState::ERR && !self.context().uverbs().provider().flushes_all() {
            self.flush();
        }
    }

    /// Reports the requests that the device does not complete as flushed.
    fn flush(&self) {
        self.send_cq.flush(self.sends.index());
        if let Some(receives) = &self.receives {
            self.recv_cq.flush(receives.index());
        }
    }

    /// Queries its attributes. [`QpAttr::mask`] selects those that the driver reports, few
    /// on siw; the others are zero. Source: `ibv_query_qp(3)`.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_query_qp")]
    pub fn query(&self) -> Result<QpAttr> {
        let uverbs = self.context().uverbs();
        let queryable = uverbs.provider().queryable_attributes();
        let number = self.number;
        let operation = Operation::QueryQueuePair { number };
        let request = QueryQp::new(self.handle, queryable);
        let answer = uverbs.ask(operation, &request)?;
        Ok(from_query(queryable, answer))
    }

    /// Queries its state; `None` if the driver does not report it, as siw of Linux 6.1,
    /// which leaves it uninitialised (zero, if the kernel clears memory before use). siw
    /// reports `INIT` for a new queue pair, and has no `RESET`. Source: `ibv_query_qp(3)`.
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    #[doc(alias = "ibv_query_qp")]
    pub fn state(&self) -> Result<Option<QpState>> {
        let attr = self.query()?;
        Ok(attr
            .mask
            .contains(QpAttrMask::STATE)
            .then_some(attr.qp_state))
    }

    /// Its shared receive queue, if it has one.
    #[must_use]
    #[doc(alias = "ibv_srq")]
    pub fn shared_receive_queue(&self) -> Option<&SharedReceiveQueue> {
        self.shared.as_ref()
    }

    /// Identifies this queue pair in asynchronous events; not its number.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether a request has failed, so that posting fails. `true` also while the queue pair is
    /// being moved to ERR or reset.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.qp_status.is_broken()
    }

    /// How many send requests were posted whose completions were not polled. Unsignalled ones after
    /// the last signalled one count on siw only: rxe need not report them. 0 in a forked child.
    #[must_use]
    pub fn outstanding_sends(&self) -> u32 {
        self.sends.outstanding()
    }

    /// How many receive requests were posted whose completions were not polled. 0 in a forked
    /// child, and if it has a shared receive queue.
    #[must_use]
    pub fn outstanding_receives(&self) -> u32 {
        self.receives.as_ref().map_or(0, ReceiveQueue::outstanding)
    }

    /// Destroys it and returns the memory of outstanding requests, oldest first, receives
    /// last. Discards their completions. Of a shared receive queue, it returns the memory of the
    /// requests that this queue pair has completed, if their completions were not polled.
    /// Source: `ibv_destroy_qp(3)`.
    #[must_use = "it is the memory of what was outstanding"]
    #[doc(alias = "ibv_destroy_qp", alias = "rdma_destroy_qp")]
    pub fn destroy(mut self) -> Vec<(WorkId, SgList)> {
        self.end()
    }

    fn end(&mut self) -> Vec<(WorkId, SgList)> {
        if std::mem::replace(&mut self.destroyed, true) {
            return Vec::new();
        }
        let destroyed = self.context().uverbs().destroy_qp(self.handle);
        let dismiss = |queue: &CompletionQueue, index, number| {
            if destroyed {
                queue.dismiss(index, number)
            } else {
                queue.abandon(index)
            }
        };
        let mut outstanding = dismiss(&self.send_cq, self.sends.index(), None);
        let receives = self.receives.as_ref().map(ReceiveQueue::index);
        let shared = self.shared.as_ref().map(SharedReceiveQueue::index);
        if let Some(index) = receives.or(shared) {
            let mut others = dismiss(&self.recv_cq, index, Some(self.number));
            if !others.is_empty() {
                outstanding.append(&mut others);
            }
        }
        if !destroyed {
            // The device may still use this, even after it was deregistered.
            let kept = outstanding.drain(..);
            kept.for_each(|(_, sg_list)| sg_list.keep());
        }
        outstanding
    }

    /// Checks the kernel's answer to its creation.
    fn check(&self, asked: QpCaps) -> Result<()> {
        let asked = match &self.shared {
            None => asked,
            Some(_) => QpCaps {
                max_recv_wr: 0,
                max_recv_sge: 0,
                ..asked
            },
        };
        let what = if self.number > LAST_NUMBER {
            "a number of more than 24 bits"
        } else if !self.caps.hold(asked) {
            "queues smaller than asked for"
        } else {
            return Ok(());
        };
        let operation = Operation::CreateQueuePair(self.qp_type);
        Err(Error::answer(operation, CommandNumber::CREATE_QP, what))
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.end();
    }
}
