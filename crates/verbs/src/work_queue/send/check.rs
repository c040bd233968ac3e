//! Checks of requests before they are posted.

use rdmacm_core::QpType;

use super::SendParts;
use crate::memory::{SgList, Sge};
use crate::request::{Payload, SendOperation, SendRequest};

/// The size and alignment of an atomic's memory.
const ATOMIC_SIZE: u64 = 8;

/// The longest message: IBTA allows 2 GiB, siw uses a signed 32-bit length.
pub(in crate::work_queue) const MAX_MESSAGE: u64 = (1 << 31) - 1;

/// # Errors
/// Why the request is invalid.
pub(super) fn check(queue: &SendParts, request: &SendRequest<'_>) -> Result<(), &'static str> {
    let provider = queue.domain.context().uverbs().provider();
    if queue.qp_status.is_broken() {
        return Err(super::BROKEN);
    }
    if !provider.supports(queue.qp_type, &request.operation) {
        return Err("queue pairs of this type and device do not support this operation");
    }
    match (&request.destination, queue.qp_type == QpType::UD) {
        (None, true) => return Err("a datagram needs a destination"),
        (Some(_), false) => return Err("a request of a connected queue pair has no destination"),
        (Some(destination), true) if !destination.address.protection_domain().is(&queue.domain) => {
            return Err("its address handle is of another protection domain");
        }
        _ => {}
    }
    let length = match &request.payload {
        Payload::Inline(bytes) => inline(queue, &request.operation, bytes)?,
        Payload::SgList(memory) => sg_list(queue, &request.operation, memory)?,
    };
    let max_message = request
        .destination
        .as_ref()
        .map(|destination| destination.address.max_message());
    if max_message.is_some_and(|max_message| length > max_message.into()) {
        return Err("a datagram is no longer than the MTU");
    }
    if length > MAX_MESSAGE {
        return Err("it is longer than a message can be, 2 GiB less a byte");
    }
    remote(&request.operation, length)
}

fn inline(queue: &SendParts, operation: &SendOperation, bytes: &[u8]) -> Result<u64, &'static str> {
    let provider = queue.domain.context().uverbs().provider();
    if operation.fetches() {
        Err("the result needs registered memory")
    } else if !provider.supports_inline(operation) {
        Err("the device does not support inline data with this operation")
    } else if bytes.len() > queue.max_inline as usize {
        Err("the inline data is longer than QpCaps::max_inline_data")
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
    let max_sges = match operation {
        SendOperation::Read(_) => queue.max_sges.min(provider.max_read_sges()),
        _ => queue.max_sges,
    };
    let length = sg_list.iter().map(|sge| sge.len() as u64).sum();
    if sg_list.len() > max_sges as usize {
        Err("it has more scatter/gather entries than the queue pair allows")
    } else if sg_list.iter().any(|sge| !sge.is_of(&queue.domain)) {
        Err("its memory is registered in another protection domain")
    } else if operation.fetches() && !sg_list.iter().all(Sge::is_writable) {
        Err("its memory is not registered for writing")
    } else if operation.is_atomic() && (sg_list.len() != 1 || length != ATOMIC_SIZE) {
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
    } else if operation.is_atomic() && remote.address() % ATOMIC_SIZE != 0 {
        Err("the peer's memory is not aligned to 8 bytes")
    } else {
        Ok(())
    }
}
