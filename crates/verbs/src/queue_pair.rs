//! Queue pairs.

use std::collections::VecDeque;
use std::sync::Arc;

use rdmacm_abi::uverbs::{CommandNumber, QueryQp};
use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType, Transport};

use crate::completion::{Completion, WorkId};
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::token::Token;
use crate::work_queue::{QpStatus, ReceiveQueue, SendQueue};

mod attributes;
mod connect;
mod multicast;
mod options;
mod post;
#[cfg(test)]
mod tests;

pub(crate) use attributes::from_query;

pub use options::{QpCaps, QpOptions};

/// The numbers of queue pairs have 24 bits.
const LAST_NUMBER: u32 = 0xff_ffff;

/// A queue pair. Dropping it destroys it in the kernel, before what it was
/// made from, and frees the memory of requests that were outstanding;
/// [`destroy`](Self::destroy) gives it back.
///
/// A request that failed leaves a connected queue pair in the error state: what
/// was posted completes as flushed, and more is refused.
///
/// On siw, dropping one blocks for as long as a connection of it waits for the
/// peer's answer, up to 10 s; and a queue pair is good for one connection:
/// after a rejection or a disconnection it stays in the error state, though
/// [`modify`](Self::modify) says nothing of that.
#[derive(Debug)]
#[doc(alias = "ibv_qp")]
pub struct QueuePair {
    handle: u32,
    number: u32,
    token: Token,
    qp_type: QpType,
    caps: QpCaps,
    protection_domain: ProtectionDomain,
    send_queue: CompletionQueue,
    receive_queue: CompletionQueue,
    shared: Option<SharedReceiveQueue>,
    health: Arc<QpStatus>,
    sends: Arc<SendQueue>,
    receives: Option<Arc<ReceiveQueue>>,
    destroyed: bool,
}

impl QueuePair {
    /// What a queue pair of this type is to be like.
    #[must_use]
    pub fn options(qp_type: QpType) -> QpOptions {
        QpOptions::new(qp_type)
    }

    /// The number peers know it by, 24 bits.
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

    /// How much it holds: as much as asked for, or more. Linux 6.1 says what
    /// was asked for even where rxe has room for more.
    #[must_use]
    #[doc(alias = "ibv_qp_cap")]
    pub fn caps(&self) -> QpCaps {
        self.caps
    }

    /// The device it was made on.
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

    /// Where it reports what it has sent.
    #[must_use]
    pub fn send_queue(&self) -> &CompletionQueue {
        &self.send_queue
    }

    /// Where it reports what it has received.
    #[must_use]
    pub fn receive_queue(&self) -> &CompletionQueue {
        &self.receive_queue
    }

    /// Changes attributes: `attr` holds the values, `mask` says which of them
    /// count; [`QpAttr::mask`] does not. Which may change in which state says
    /// `ibv_modify_qp(3)`. siw looks at the state and the access flags only.
    ///
    /// In ERR it takes no more requests and gives back what it has. On siw all of that is
    /// there to be polled when this returns; what was posted after the connection had
    /// ended wakes nobody who waits for it, and comes back in no other way. In RESET it
    /// forgets its requests, which do not complete any more, and completions that were
    /// not taken; their memory stays with the queue pair until it is destroyed, because
    /// rxe of Linux 6.1 may still be filling it. siw takes RESET for a success and
    /// changes nothing: its requests complete as ever, and an error stays one.
    ///
    /// siw overlooks what arrives during any move until more does
    /// (`siw_qp_llp_data_ready`), and refuses a request that is posted meanwhile.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a state, MTU or path migration that is none;
    /// [`Error::Command`] when the kernel refuses, with `EINVAL` for attributes
    /// that do not lead from this state to that.
    #[doc(alias = "ibv_modify_qp")]
    pub fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> Result<()> {
        let operation = Operation::ModifyQueuePair {
            number: self.number,
            state: mask.contains(QpAttrMask::STATE).then_some(attr.qp_state),
            mask,
        };
        let request = attributes::to_modify(self.handle, attr, mask)
            .map_err(|reason| Error::invalid(operation, reason))?;
        self.context().uverbs().ask(operation, &request)?;
        if mask.contains(QpAttrMask::STATE) {
            self.moved(attr.qp_state);
        }
        Ok(())
    }

    /// What follows from a move.
    fn moved(&self, state: QpState) {
        // An iWARP connection does not come back from being drained.
        let drained = self.context().transport() == Transport::IWarp && state == QpState::SQD;
        if state == QpState::ERR || drained {
            self.health.set_broken();
        }
        if state == QpState::ERR && !self.context().uverbs().provider().flushes_all() {
            self.flush();
        } else if state == QpState::RESET && self.context().uverbs().provider().resets() {
            self.sends.reset();
            self.send_queue.purge(self.sends.token());
            if let Some(receives) = &self.receives {
                receives.reset();
                self.receive_queue.purge(receives.token());
            }
            self.health.set_whole();
        }
    }

    /// Reports what the device will not complete.
    fn flush(&self) {
        self.send_queue.flush(self.sends.token(), &*self.sends);
        if let Some(receives) = &self.receives {
            self.receive_queue.flush(receives.token(), &**receives);
        }
    }

    /// Its attributes now. [`QpAttr::mask`] says which of them the driver told:
    /// siw tells few. The rest is zero.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_query_qp")]
    pub fn query(&self) -> Result<QpAttr> {
        let uverbs = self.context().uverbs();
        let tells = uverbs.provider().tells();
        let number = self.number;
        let operation = Operation::QueryQueuePair { number };
        let request = QueryQp::new(self.handle, tells);
        let answer = uverbs.ask(operation, &request)?;
        Ok(from_query(tells, answer))
    }

    /// Its state now; `None` where the driver does not tell, as siw on Linux
    /// 6.1, which leaves it to chance (to zeros, where the kernel clears memory
    /// before use). siw takes `INIT` for the state of a new one, and knows no
    /// `RESET`.
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

    /// The queue it receives from, if it is a shared one.
    #[must_use]
    #[doc(alias = "ibv_srq")]
    pub fn shared_receive_queue(&self) -> Option<&SharedReceiveQueue> {
        self.shared.as_ref()
    }

    /// Its name in events.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether a request of its has failed, so that it takes no more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.health.is_broken()
    }

    /// Destroys it, and gives back the memory of the requests that were
    /// outstanding, oldest first, receives last. Their completions, if there are
    /// any yet, are gone.
    #[must_use = "it is the memory of what was outstanding"]
    pub fn destroy(mut self) -> Vec<(WorkId, SgList)> {
        self.end()
    }

    fn end(&mut self) -> Vec<(WorkId, SgList)> {
        if std::mem::replace(&mut self.destroyed, true) {
            return Vec::new();
        }
        let destroyed = self.context().uverbs().destroy_qp(self.handle);
        let mut outstanding: Vec<_> = self.dismissed().into_iter().flat_map(memory).collect();
        outstanding.extend(self.sends.take_all());
        let receives = self.receives.as_ref();
        outstanding.extend(receives.map(|queue| queue.take_all()).unwrap_or_default());
        if !destroyed {
            // It may use this yet, whoever may deregister it.
            let kept = outstanding.drain(..);
            kept.for_each(|(_, sg_list)| sg_list.keep());
        }
        outstanding
    }

    /// Leaves its completion queues, and takes what they were to report next.
    fn dismissed(&self) -> VecDeque<Completion> {
        let mut completions = self.send_queue.dismiss(self.sends.token());
        let receives = match (&self.receives, &self.shared) {
            (Some(receives), _) => receives.token(),
            (None, Some(shared)) => shared.token().number(),
            (None, None) => return completions,
        };
        completions.append(&mut self.receive_queue.dismiss(receives));
        completions
    }

    /// What of a new one's answer can be wrong.
    fn check(self, asked: QpCaps) -> Result<Self> {
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
            return Ok(self);
        };
        let operation = Operation::CreateQueuePair(self.qp_type);
        Err(Error::answer(operation, CommandNumber::CREATE_QP, what))
    }
}

/// Whose memory a completion holds, oldest first.
fn memory(completion: Completion) -> impl Iterator<Item = (WorkId, SgList)> {
    let last = (completion.work, completion.sg_list);
    completion.earlier.into_iter().chain([last])
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.end();
    }
}
