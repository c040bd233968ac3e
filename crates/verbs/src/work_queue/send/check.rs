//! What is refused before it is posted.

use rdmacm_core::QpType;

use super::SendParts;
use crate::memory::{SgList, Sge};
use crate::request::{Payload, SendOperation, SendRequest};

/// Bytes an atomic works on, and what they are aligned to.
const ATOMIC: u64 = 8;

/// The longest message: IBTA has 2 GiB, siw counts in a signed word.
pub(in crate::work_queue) const LONGEST: u64 = (1 << 31) - 1;

/// What is wrong with a request.
pub(super) fn check(queue: &SendParts, request: &SendRequest<'_>) -> Result<(), &'static str> {
    let provider = queue.domain.context().uverbs().provider();
    if queue.health.is_broken() {
        return Err("the queue pair is in the error state");
    }
    if !provider.supports(queue.qp_type, &request.operation) {
        return Err("queue pairs of this type and device cannot do that");
    }
    match (&request.destination, queue.qp_type == QpType::UD) {
        (None, true) => return Err("a datagram needs a destination"),
        (Some(_), false) => return Err("a connection has its destination already"),
        (Some(to), true) if !to.address.protection_domain().is(&queue.domain) => {
            return Err("its address handle is of another protection domain");
        }
        _ => {}
    }
    let length = match &request.payload {
        Payload::Inline(bytes) => inline(queue, &request.operation, bytes)?,
        Payload::SgList(memory) => sg_list(queue, &request.operation, memory)?,
    };
    let longest = request
        .destination
        .as_ref()
        .map(|to| to.address.max_message());
    if longest.is_some_and(|longest| length > longest.into()) {
        return Err("a datagram is no longer than the MTU");
    }
    if length > LONGEST {
        return Err("it is longer than a message can be, 2 GiB less a byte");
    }
    remote(&request.operation, length)
}

fn inline(queue: &SendParts, operation: &SendOperation, bytes: &[u8]) -> Result<u64, &'static str> {
    let provider = queue.domain.context().uverbs().provider();
    if operation.fetches() {
        Err("what comes back needs registered memory")
    } else if !provider.supports_inline(operation) {
        Err("the device carries nothing in line with that")
    } else if bytes.len() > queue.max_inline as usize {
        Err("it is more than the queue pair carries in line (QpCaps::max_inline_data)")
    } else {
        Ok(bytes.len() as u64)
    }
}

fn sg_list(
    queue: &SendParts,
    operation: &SendOperation,
    sg_list: &SgList,
) -> Result<u64, &'static str> {
    let provider = queue.domain.context().uverbs().provider();
    let most = match operation {
        SendOperation::Read(_) => queue.max_sges.min(provider.max_read_sges()),
        _ => queue.max_sges,
    };
    let length = sg_list.iter().map(|sge| sge.len() as u64).sum();
    if sg_list.len() > most as usize {
        Err("it has more scatter/gather entries than the queue pair's requests may")
    } else if sg_list.iter().any(|sge| !sge.is_of(&queue.domain)) {
        Err("its memory is registered in another protection domain")
    } else if operation.fetches() && !sg_list.iter().all(Sge::is_writable) {
        Err("its memory is not registered for writing")
    } else if operation.is_atomic() && (sg_list.len() != 1 || length != ATOMIC) {
        Err("an atomic operation takes one scatter/gather entry of 8 bytes")
    } else {
        Ok(length)
    }
}

fn remote(operation: &SendOperation, length: u64) -> Result<(), &'static str> {
    let Some(remote) = operation.remote() else {
        return Ok(());
    };
    if remote.len() < length {
        Err("the peer's memory is shorter than this side's")
    } else if operation.is_atomic() && remote.address() % ATOMIC != 0 {
        Err("the peer's 8 bytes are not aligned to 8")
    } else {
        Ok(())
    }
}
