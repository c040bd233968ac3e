//! Queue pairs.

use rdmacm_abi::uverbs::{CommandNumber, DestroyQp, QueryQp};
use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType};

use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

mod attributes;
mod connect;
mod options;

pub use options::{QpCaps, QpOptions};

/// The numbers of queue pairs have 24 bits.
const LAST_NUMBER: u32 = 0xff_ffff;

/// A queue pair. Dropping it destroys it in the kernel, before what it was
/// made from.
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
    qp_type: QpType,
    caps: QpCaps,
    protection_domain: ProtectionDomain,
    send_queue: CompletionQueue,
    receive_queue: CompletionQueue,
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
        Ok(())
    }

    /// Its attributes now. [`QpAttr::mask`] says which of them the driver told:
    /// siw tells few. The rest is zero.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_query_qp")]
    pub fn query(&self) -> Result<QpAttr> {
        let driver = self.context().driver();
        let number = self.number;
        let operation = Operation::QueryQueuePair { number };
        let request = QueryQp::new(self.handle, driver.tells());
        let answer = self.context().uverbs().ask(operation, &request)?;
        Ok(attributes::from_query(driver, answer))
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

    /// What of a new one's answer can be wrong.
    fn check(self, asked: QpCaps) -> Result<Self> {
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

impl Drop for QueuePair {
    fn drop(&mut self) {
        let request = DestroyQp::new(self.handle);
        self.context().uverbs().destroy(&request);
    }
}
