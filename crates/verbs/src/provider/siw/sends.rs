//! siw's send queues.

use rdmacm_abi::uverbs::Sge;
use rdmacm_abi::uverbs::siw::{MAX_INLINE, MAX_SGE, Opcode, Sqe, WqeFlags};
use zerocopy::FromZeros;

use super::queue::{Queue, copy, most};
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{SendRing, SendSlot, SlotPayload, Uverbs};
use crate::request::SendOperation;

/// How often to look again for a slot that the driver frees just after it has
/// reported the request that was there (`siw_sqe_complete`).
const LOOKS: usize = 10_000;

/// A send queue.
#[derive(Debug)]
pub(super) struct Sends(pub(super) Queue<Sqe>);

impl Sends {
    pub(super) fn map(
        uverbs: &Uverbs,
        operation: Operation,
        offset: u64,
        entries: u32,
    ) -> Result<Self> {
        Queue::map(uverbs, operation, offset, entries).map(Self)
    }
}

impl SendRing for Sends {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn max_inline(&self) -> u32 {
        most(MAX_INLINE)
    }

    fn max_pieces(&self) -> u32 {
        most(MAX_SGE)
    }

    fn has_room(&self, requests: usize) -> bool {
        let Some(last) = u32::try_from(requests).ok().and_then(|n| n.checked_sub(1)) else {
            return requests == 0;
        };
        // Slots become free in order.
        let is_free = || {
            let free = self.0.is_free(last);
            if !free {
                std::hint::spin_loop();
            }
            free
        };
        last < self.capacity() && (0..LOOKS).any(|_| is_free())
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let (element, flags) = element(request);
        self.0.push(&element, flags);
    }
}

/// siw's number for it, if it has one.
pub(super) fn opcode(operation: &SendOperation) -> Option<Opcode> {
    Some(match operation {
        SendOperation::Send => Opcode::SEND,
        SendOperation::SendWithInvalidate(_) => Opcode::SEND_REMOTE_INV,
        SendOperation::Write(_) => Opcode::WRITE,
        SendOperation::Read(_) => Opcode::READ,
        _ => return None,
    })
}

fn element(request: &SendSlot<'_>) -> (Sqe, WqeFlags) {
    let mut flags = WqeFlags::empty();
    flags.set(WqeFlags::SIGNALLED, request.signaled);
    flags.set(WqeFlags::SOLICITED, request.solicited);
    // Reads are answered in order, and siw does not take one with a fence.
    let reads = matches!(request.operation, SendOperation::Read(_));
    flags.set(WqeFlags::READ_FENCE, request.fence && !reads);
    let mut element = Sqe::new_zeroed();
    element.id = request.number;
    // Others are refused before they come here.
    element.opcode = opcode(&request.operation).unwrap_or(Opcode::SEND);
    if let Some(remote) = request.operation.remote() {
        element.remote_address = remote.address();
        element.rkey = remote.key();
    }
    if let SendOperation::SendWithInvalidate(key) = request.operation {
        element.rkey = key;
    }
    match request.payload {
        SlotPayload::Pieces(pieces) => {
            element.sge_count = copy(pieces, &mut element.sges);
            if element.sge_count == 1 && !matches!(request.operation, SendOperation::Read(_)) {
                element.sge_count = divide(&mut element.sges);
            }
        }
        SlotPayload::Inline([]) => {}
        SlotPayload::Inline(bytes) => {
            flags |= WqeFlags::INLINE;
            element.sge_count = 1;
            let room = element.inline_data_mut();
            let length = bytes.len().min(room.len());
            for (to, from) in room.iter_mut().zip(bytes) {
                *to = *from;
            }
            if let Some(first) = element.sges.first_mut() {
                // No more than there is room for.
                first.length = u32::try_from(length).unwrap_or(u32::MAX);
            }
        }
    }
    (element, flags)
}

/// Cuts a single short piece in two where it crosses into another page, and gives
/// the number of pieces. siw puts a single one that goes with its header into that,
/// and takes the wrong bytes from two pages (`siw_try_1seg`).
fn divide(pieces: &mut [Sge]) -> u8 {
    /// More than goes with a header.
    const SHORT: u32 = 128;
    const PAGE: u64 = 4096;
    let [first, second, ..] = pieces else {
        return 1;
    };
    let crossing = PAGE - first.address % PAGE;
    match u32::try_from(crossing) {
        Ok(before) if before < first.length && first.length < SHORT => {
            *second = Sge {
                address: first.address + crossing,
                length: first.length - before,
                lkey: first.lkey,
            };
            first.length = before;
            2
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(address: u64, length: u32) -> Sge {
        Sge {
            address,
            length,
            lkey: 7,
        }
    }

    #[test]
    fn a_short_piece_is_cut_where_a_page_ends() {
        let divided = |address, length| {
            let mut pieces = [piece(address, length), piece(0, 0)];
            (divide(&mut pieces), pieces)
        };
        let cut = [piece(0x2ffd, 3), piece(0x3000, 28)];
        assert_eq!(divided(0x2ffd, 31), (2, cut));
        for (address, length) in [(0x2ffd, 3), (0x3000, 31), (0x2ffd, 4000)] {
            let whole = [piece(address, length), piece(0, 0)];
            assert_eq!(divided(address, length), (1, whole));
        }
    }
}
