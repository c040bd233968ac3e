//! Requests in the format of siw.

use std::sync::Arc;

use rdmacm_abi::uverbs::siw::{Opcode, Rqe, Sqe, WqeFlags};
use rdmacm_abi::uverbs::{Sge, WcOpcode, WcStatus};
use zerocopy::FromBytes;

use super::{Receive, Request, UNREADABLE};
use crate::verbs::Verbs;
use crate::verbs::memory::KeyedMemory;
use crate::verbs::message::{Operation, With};

/// Reads an element of a send queue.
pub(super) fn request(verbs: &Verbs, domain: u32, psn: u32, bytes: &[u8]) -> Option<Request> {
    let (element, _) = Sqe::read_from_prefix(bytes).ok()?;
    let is_inline = element.flags.contains(WqeFlags::INLINE);
    let sges = sges(&element.sges, element.sge_count);
    let length = sges
        .iter()
        .map(|sge| sge.length)
        .fold(0, u32::saturating_add);
    let data = || -> Result<Arc<[u8]>, WcStatus> {
        if is_inline {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let data = element.inline_data().get(..length);
            return data.map(Arc::from).ok_or(UNREADABLE);
        }
        let gathered = verbs.gather(domain, &sges);
        gathered.map(Arc::from).map_err(|_| UNREADABLE)
    };
    let remote = KeyedMemory {
        address: element.remote_address,
        key: element.rkey,
    };
    let send = |data, with| Operation::Send { data, with };
    let operation = match element.opcode {
        Opcode::SEND => data().map(|data| send(data, With::Nothing)),
        Opcode::SEND_REMOTE_INV => data().map(|data| send(data, With::Invalidate(element.rkey))),
        Opcode::WRITE => data().map(|data| Operation::Write {
            to: remote,
            data,
            immediate: None,
        }),
        Opcode::READ => Ok(Operation::Read {
            from: remote,
            length,
        }),
        _ => Err(WcStatus::LOC_QP_OP_ERR),
    };
    Some(Request {
        id: element.id,
        psn,
        opcode: completion_opcode(element.opcode),
        is_signaled: element.flags.contains(WqeFlags::SIGNALLED),
        is_solicited: element.flags.contains(WqeFlags::SOLICITED),
        length,
        sges,
        operation,
        reply: None,
    })
}

/// The id of an element of a send queue.
pub(super) fn id(bytes: &[u8]) -> Option<u64> {
    let (element, _) = Sqe::read_from_prefix(bytes).ok()?;
    Some(element.id)
}

/// Reads an element of a receive queue.
pub(super) fn receive(bytes: &[u8]) -> Option<Receive> {
    let (element, _) = Rqe::read_from_prefix(bytes).ok()?;
    Some(Receive {
        id: element.id,
        sges: sges(&element.sges, element.sge_count),
    })
}

fn sges(sges: &[Sge], count: u8) -> Vec<Sge> {
    sges.iter().take(count.into()).copied().collect()
}

fn completion_opcode(opcode: Opcode) -> WcOpcode {
    match opcode {
        Opcode::WRITE => WcOpcode::RDMA_WRITE,
        Opcode::READ => WcOpcode::RDMA_READ,
        _ => WcOpcode::SEND,
    }
}
