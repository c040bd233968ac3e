//! Moving a queue pair to RESET.

use rdmacm_abi::uverbs::ModifyQp;
use rdmacm_core::QpState;

use super::QueuePair;
use crate::error::Result;
use crate::operation::Operation;

impl QueuePair {
    /// Whether a move to this state discards its requests.
    pub(super) fn is_reset_by(&self, state: QpState) -> bool {
        state == QpState::RESET && self.context().uverbs().provider().resets()
    }

    /// Completes a reset that the kernel has carried out: repeats it. Requests are refused meanwhile.
    pub(super) fn reset(&self, operation: Operation, request: &ModifyQp) -> Result<()> {
        let repeated = self.context().uverbs().ask(operation, request).map(drop);
        self.discard();
        match &repeated {
            Ok(()) => self.qp_status.set_working(),
            // The device might still send requests that it has discarded.
            Err(_) => self.qp_status.set_broken(),
        }
        repeated
    }

    /// Forgets the requests that the device has discarded.
    fn discard(&self) {
        self.sends.reset();
        self.send_cq.discard(self.sends.index());
        if let Some(receives) = &self.receives {
            self.recv_cq.discard(receives.index());
        }
        if let Some(shared) = &self.shared {
            self.recv_cq.discard_completed(shared.index(), self.number);
        }
    }
}
