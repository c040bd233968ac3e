//! Checks of requests before they are posted.

use rdmacm_abi::uverbs::{SendFlags, WrOpcode};
use rdmacm_core::QpType;

use super::SendParts;
use crate::memory::{SgList, Sge};
use crate::opcodes::Opcodes;
use crate::request::{Destination, SendOperation, SendRequest};

/// The size and alignment of an atomic's memory.
const ATOMIC_SIZE: u64 = 8;

/// The longest message: IBTA allows 2 GiB, siw uses a signed 32-bit length.
pub(in crate::work_queue) const MAX_MESSAGE: u64 = (1 << 31) - 1;

/// The operations that send bytes of this side.
const CARRYING: Opcodes = Opcodes::of(&[
    WrOpcode::SEND,
    WrOpcode::SEND_WITH_IMM,
    WrOpcode::SEND_WITH_INV,
    WrOpcode::RDMA_WRITE,
    WrOpcode::RDMA_WRITE_WITH_IMM,
]);

/// What a queue's type and device allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    operations: Opcodes,
    inline_operations: Opcodes,
    max_read_sges: u32,
    /// Whether the device may write behind the memory of a read.
    overruns_reads: bool,
    is_datagram: bool,
    /// The number of its domain if it takes a SEND of one scatter/gather entry, otherwise 0.
    fast_path_domain: usize,
    /// The operations without a destination that it takes with inline data.
    fast_path_inline_operations: Opcodes,
}

impl Rules {
    pub(super) fn of(parts: &SendParts) -> Self {
        let provider = parts.domain.context().uverbs().provider();
        let operations = provider.operations(parts.qp_type);
        let is_datagram = parts.qp_type == QpType::UD;
        let sends = operations.contain(WrOpcode::SEND);
        let has_fast_path = sends && !is_datagram && parts.max_sges > 0;
        let inline_operations = provider.inline_operations();
        let fast_path_inline_operations = if is_datagram {
            Opcodes::NONE
        } else {
            operations.and(inline_operations).and(CARRYING)
        };
        Self {
            operations,
            inline_operations,
            fast_path_inline_operations,
            max_read_sges: parts.max_sges.min(provider.max_read_sges()),
            overruns_reads: provider.overruns_reads(),
            is_datagram,
            fast_path_domain: if has_fast_path { parts.domain.id() } else { 0 },
        }
    }

    /// Whether the request is a signalled SEND of one part of a buffer, and valid.
    #[inline]
    pub(super) fn is_fast_path(&self, request: &SendRequest<'_>) -> bool {
        let sge = request.sg_list.as_buffer();
        let is_valid = sge.is_some_and(|sge| {
            sge.domain_id() == self.fast_path_domain && u64::from(sge.len()) <= MAX_MESSAGE
        });
        is_valid && request.is_fast_path
    }

    /// Whether the request is signalled, has inline data and no destination, and is valid.
    #[inline]
    pub(super) fn is_inline(
        &self,
        queue: &SendParts,
        request: &SendRequest<'_>,
        bytes: &[u8],
    ) -> bool {
        let remote = request.operation.remote();
        request.flags.contains(SendFlags::SIGNALED)
            && request.destination.is_none()
            && self
                .fast_path_inline_operations
                .contain(request.operation.opcode())
            && bytes.len() <= queue.max_inline as usize
            && remote.is_none_or(|remote| remote.len() >= bytes.len() as u64)
    }

    /// # Errors
    /// Why the request is invalid.
    #[inline]
    pub(super) fn check(
        &self,
        queue: &SendParts,
        request: &SendRequest<'_>,
    ) -> Result<(), &'static str> {
        let opcode = request.operation.opcode();
        if !self.operations.contain(opcode) {
            return Err("queue pairs of this type and device do not support this operation");
        }
        let length = match request.inline {
            None => self.sg_list(queue, &request.operation, opcode, &request.sg_list)?,
            Some(bytes) => self.inline(queue, &request.operation, opcode, bytes)?,
        };
        if length > MAX_MESSAGE {
            return Err("it is longer than a message can be, 2 GiB less a byte");
        }
        if self.is_datagram || request.destination.is_some() {
            self.destination(queue, request.destination.as_ref(), length)?;
        }
        if opcode == WrOpcode::SEND {
            return Ok(());
        }
        remote(&request.operation, length)
    }

    #[cold]
    fn destination(
        &self,
        queue: &SendParts,
        destination: Option<&Destination>,
        length: u64,
    ) -> Result<(), &'static str> {
        let Some(destination) = destination else {
            return Err("a datagram needs a destination");
        };
        let address = &destination.address;
        if !self.is_datagram {
            Err("a request of a connected queue pair has no destination")
        } else if address.protection_domain() != &queue.domain {
            Err("its address handle is of another protection domain")
        } else if length > address.max_message().into() {
            Err("a datagram is no longer than the MTU")
        } else {
            Ok(())
        }
    }

    fn inline(
        &self,
        queue: &SendParts,
        operation: &SendOperation,
        opcode: WrOpcode,
        bytes: &[u8],
    ) -> Result<u64, &'static str> {
        if operation.fetches() {
            Err("the result needs registered memory")
        } else if !self.inline_operations.contain(opcode) {
            Err("the device does not support inline data with this operation")
        } else if bytes.len() > queue.max_inline as usize {
            Err("the inline data is longer than QpCaps::max_inline_data")
        } else {
            Ok(bytes.len() as u64)
        }
    }

    #[inline]
    fn sg_list(
        &self,
        queue: &SendParts,
        operation: &SendOperation,
        opcode: WrOpcode,
        sg_list: &SgList,
    ) -> Result<u64, &'static str> {
        if opcode == WrOpcode::SEND && queue.max_sges > 0 {
            if let Some(sge) = sg_list.as_one() {
                return length(queue, sge);
            }
        }
        self.lengths(queue, operation, opcode, sg_list)
    }

    fn lengths(
        &self,
        queue: &SendParts,
        operation: &SendOperation,
        opcode: WrOpcode,
        sg_list: &SgList,
    ) -> Result<u64, &'static str> {
        let max_sges = if opcode == WrOpcode::RDMA_READ {
            self.max_read_sges
        } else {
            queue.max_sges
        };
        if sg_list.len() > max_sges as usize {
            return Err("it has more scatter/gather entries than the queue pair allows");
        }
        let mut sum = 0;
        for sge in sg_list.iter() {
            sum += length(queue, sge)?;
        }
        if operation.fetches() {
            fetched(operation, sg_list, sum)?;
            if self.overruns_reads && sg_list.iter().any(Sge::shares_pages) {
                return Err(
                    "a peer could write beyond this memory: read into a whole allocated buffer",
                );
            }
        }
        Ok(sum)
    }
}

#[inline]
fn length(queue: &SendParts, sge: &Sge) -> Result<u64, &'static str> {
    if sge.is_of(&queue.domain) {
        Ok(sge.len() as u64)
    } else {
        Err("its memory is registered in another protection domain")
    }
}

/// Checks the memory into which bytes of the peer are fetched.
fn fetched(operation: &SendOperation, sg_list: &SgList, length: u64) -> Result<(), &'static str> {
    if !sg_list.iter().all(Sge::is_writable) {
        Err("its memory is not registered for writing")
    } else if operation.is_atomic() && (sg_list.len() != 1 || length != ATOMIC_SIZE) {
        Err("an atomic operation takes one scatter/gather entry of 8 bytes")
    } else {
        Ok(())
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
