//! What was posted and has not completed.

use std::collections::VecDeque;

use rdmacm_rsocket::{Message, ProtocolError, SendRing, Sender, Transport, Update, Write};
use rdmacm_verbs::{
    Buffer, Completion, QueuePair, RemoteAccessRegion, RemoteMemory, SendOperation, SendRequest,
    SgList, Sge, WorkId,
};

use super::failure::StreamFailure;
use super::peer_maps::PeerMaps;
use super::send_buffers::SendBuffers;
use super::slices::Slices;

mod mapped_memory;

/// Up to this many bytes of several slices are gathered for an inline request.
const MAX_GATHERED: usize = 64;

/// The most bytes of one write, so that the peer reads the first ones while others are in
/// flight.
pub(super) const MAX_WRITE: u32 = 64 * 1024;

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct SendState {
    transport: Transport,
    pub(super) sender: Option<Sender>,
    ring: SendRing,
    memory: RemoteAccessRegion,
    in_flight: VecDeque<InFlight>,
    /// Empty, for the completions that are handled.
    pub(super) completions: Vec<Completion>,
    /// How many data requests fit.
    requests: usize,
    /// How many more requests for updates fit.
    updates: u32,
    /// Writes of up to this many bytes are posted inline.
    max_inline: usize,
    /// On iWARP the connecting side sends first (RFC 5044 §7.1).
    pub(super) may_send: bool,
    /// The end of this direction is sent once this side may send.
    pub(super) is_shutdown_due: bool,
    /// The peer has sent its first message, and this side nothing since.
    pub(super) is_answer_due: bool,
    /// Bytes that were written, and those whose write has completed.
    written: u64,
    acknowledged: u64,
    /// What the peer has mapped, by its entries in this side's table.
    pub(super) peer_maps: PeerMaps,
    /// What this side has mapped, by entries in the peer's table. The peer may write there
    /// until the stream ends.
    maps: Vec<RemoteAccessRegion>,
    pub(super) buffers: SendBuffers,
}

/// A request that the device has, and what its completion gives back.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    work: WorkId,
    charge: Charge,
}

/// What a message occupies until it has completed.
#[derive(Clone, Copy, Debug, Default)]
struct Charge {
    bytes: u32,
    ring_bytes: u32,
    data_requests: u32,
    update_requests: u32,
}

/// The bytes that a message reports.
enum Payload<'a> {
    None,
    Inline(RemoteMemory, &'a [u8]),
    Registered(RemoteMemory, Sge),
}

impl SendState {
    pub(super) fn new(
        transport: Transport,
        memory: RemoteAccessRegion,
        requests: usize,
        updates: u32,
        max_inline: usize,
    ) -> Self {
        let size = u32::try_from(memory.len()).unwrap_or(u32::MAX);
        Self {
            transport,
            sender: None,
            ring: SendRing::new(size),
            memory,
            in_flight: VecDeque::new(),
            completions: Vec::new(),
            requests,
            updates,
            max_inline,
            may_send: false,
            is_shutdown_due: false,
            is_answer_due: false,
            written: 0,
            acknowledged: 0,
            peer_maps: PeerMaps::default(),
            maps: Vec::new(),
            buffers: SendBuffers::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// How many bytes were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// How many bytes were written whose write has not completed.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }

    /// Whether at least one byte may be written.
    pub(super) fn is_writable(&self) -> bool {
        let writable = self.sender.as_ref().map_or(0, Sender::writable);
        self.may_send && writable > 0 && self.ring.free_bytes() > 0
    }

    /// Whether a write must wait for the peer, rather than for room on this side.
    pub(super) fn waits_for_peer(&self) -> bool {
        !self.may_send || self.sender.as_ref().is_none_or(Sender::waits_for_peer)
    }

    /// Whether half of the requests or of the memory are taken.
    pub(super) fn is_half_full(&self) -> bool {
        let are_requests_taken = self.in_flight.len() >= self.requests.div_ceil(2);
        let is_memory_taken = self.unacknowledged() * 2 >= self.memory.len() as u64;
        are_requests_taken || is_memory_taken || self.buffers.are_taken()
    }

    pub(super) fn has_room_for_update(&self, requests: u32) -> bool {
        self.may_send && requests <= self.updates
    }

    /// Writes as much as the peer has announced memory for, and as there is room. Returns how
    /// many bytes.
    pub(super) fn write(
        &mut self,
        queue_pair: &QueuePair,
        mut slices: Slices<'_>,
    ) -> Result<usize, StreamFailure> {
        let mut written = 0;
        while self.may_send && slices.left() > 0 {
            match self.write_once(queue_pair, &mut slices)? {
                0 => break,
                bytes => written += bytes,
            }
        }
        Ok(written)
    }

    /// Writes into one announcement, as many bytes as one request takes. Returns how many.
    #[inline]
    fn write_once(
        &mut self,
        queue_pair: &QueuePair,
        slices: &mut Slices<'_>,
    ) -> Result<usize, StreamFailure> {
        let Some(sender) = &mut self.sender else {
            return Ok(0);
        };
        let mut wanted = u32::try_from(slices.left()).unwrap_or(u32::MAX);
        if wanted as usize > self.max_inline {
            wanted = wanted.min(sender.writable());
        }
        let is_gathered = wanted as usize <= MAX_GATHERED || slices.next_are_one(wanted as usize);
        if wanted as usize > self.max_inline || !is_gathered {
            return self.write_registered(queue_pair, slices, wanted);
        }
        let Some(write) = sender.write(wanted) else {
            return Ok(0);
        };
        let length = write.length as usize;
        let mut buffer = [0; MAX_GATHERED];
        let bytes = slices.gather(length, &mut buffer);
        let payload = Payload::Inline(remote(write)?, bytes);
        let charge = self.charge(write);
        self.post(queue_pair, payload, write.message, charge)?;
        Ok(length)
    }

    /// As [`write_once`](Self::write_once), of this many bytes at most, by way of registered
    /// memory.
    fn write_registered(
        &mut self,
        queue_pair: &QueuePair,
        slices: &mut Slices<'_>,
        wanted: u32,
    ) -> Result<usize, StreamFailure> {
        let (offset, free) = self.ring.free();
        let wanted = wanted.min(free).min(MAX_WRITE);
        let write = self.sender.as_mut().and_then(|sender| sender.write(wanted));
        let Some(write) = write else {
            return Ok(0);
        };
        let (start, length) = (offset as usize, write.length as usize);
        slices.take(length, |at, bytes| self.memory.write(start + at, bytes));
        let sge = self.memory.slice(start..start + length);
        let payload = Payload::Registered(remote(write)?, sge.map_err(StreamFailure::refused)?);
        let charge = Charge {
            ring_bytes: self.ring.take(write.length),
            ..self.charge(write)
        };
        self.post(queue_pair, payload, write.message, charge)?;
        Ok(length)
    }

    /// What a write occupies, which counts as written from here on.
    #[inline]
    fn charge(&mut self, write: Write) -> Charge {
        self.written += u64::from(write.length);
        Charge {
            bytes: write.length,
            data_requests: self.transport.requests_per_write(),
            ..Charge::default()
        }
    }

    /// How many bytes one write may have, whatever memory they are in.
    pub(super) fn max_write(&self) -> usize {
        let sender = self.sender.as_ref().filter(|_| self.may_send);
        sender.map_or(0, Sender::writable) as usize
    }

    /// Sends the first bytes of a buffer, no more of them than [`max_write`](Self::max_write).
    pub(super) fn commit(
        &mut self,
        queue_pair: &QueuePair,
        buffer: Buffer,
        bytes: usize,
    ) -> Result<(), StreamFailure> {
        // No more than there is room for, which is 32 bits.
        let length = u32::try_from(bytes).unwrap_or(0);
        let write = self.sender.as_mut().and_then(|sender| sender.write(length));
        let Some(write) = write.filter(|write| write.length == length) else {
            // Only the peer can have taken the room back.
            self.buffers.give_back(buffer);
            return Err(StreamFailure::Protocol(ProtocolError::FewerCredits));
        };
        let sge = buffer.slice(0..write.length as usize);
        let sge = sge.map_err(|refused| StreamFailure::refused(refused.error))?;
        let payload = Payload::Registered(remote(write)?, sge);
        let charge = self.charge(write);
        self.post(queue_pair, payload, write.message, charge)
    }

    /// Posts an update for the peer, for which there is [room](Self::has_room_for_update).
    pub(super) fn update(
        &mut self,
        queue_pair: &QueuePair,
        update: Update,
    ) -> Result<(), StreamFailure> {
        let (requests, payload) = match &update.announcement {
            Some((address, key, bytes)) => {
                let remote = RemoteMemory::new(*address, bytes.len() as u64, *key);
                let payload = Payload::Inline(remote.ok_or(BEYOND)?, bytes);
                (self.transport.requests_per_write(), payload)
            }
            None => (1, Payload::None),
        };
        self.updates -= requests;
        let charge = Charge {
            update_requests: requests,
            ..Charge::default()
        };
        self.post(queue_pair, payload, update.message, charge)
    }

    /// Posts a message without data, for which there always is room.
    pub(super) fn control(
        &mut self,
        queue_pair: &QueuePair,
        message: Message,
    ) -> Result<(), StreamFailure> {
        self.post(queue_pair, Payload::None, message, Charge::default())
    }

    /// Posts an empty write that no message reports.
    pub(super) fn keep_alive(&mut self, queue_pair: &QueuePair) -> Result<WorkId, StreamFailure> {
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, SgList::NONE);
        self.post_one(queue_pair, request, Charge::default())
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each write")]
    fn post(
        &mut self,
        queue_pair: &QueuePair,
        payload: Payload<'_>,
        message: Message,
        charge: Charge,
    ) -> Result<(), StreamFailure> {
        let number = message.encode().unwrap_or_default();
        match self.transport {
            Transport::Immediate => self.post_immediate(queue_pair, payload, number, charge),
            Transport::Send => self.post_pair(queue_pair, payload, number, charge),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each write")]
    fn post_immediate(
        &mut self,
        queue_pair: &QueuePair,
        payload: Payload<'_>,
        number: u32,
        charge: Charge,
    ) -> Result<(), StreamFailure> {
        let write = |remote| SendOperation::WriteWithImmediate(remote, number);
        let request = match payload {
            Payload::None => SendRequest::new(write(RemoteMemory::NONE), SgList::NONE),
            Payload::Inline(remote, bytes) => SendRequest::inline(write(remote), bytes),
            Payload::Registered(remote, sge) => SendRequest::new(write(remote), sge),
        };
        self.post_request(queue_pair, request, charge)?;
        Ok(())
    }

    #[inline(never)]
    fn post_one(
        &mut self,
        queue_pair: &QueuePair,
        request: SendRequest<'_>,
        charge: Charge,
    ) -> Result<WorkId, StreamFailure> {
        self.post_request(queue_pair, request, charge)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each write")]
    fn post_request(
        &mut self,
        queue_pair: &QueuePair,
        request: SendRequest<'_>,
        charge: Charge,
    ) -> Result<WorkId, StreamFailure> {
        let posted = queue_pair.post_send(request);
        let work = posted.map_err(|refused| StreamFailure::refused(refused.error))?;
        self.in_flight.push_back(InFlight { work, charge });
        Ok(work)
    }

    /// A write, and the message after it.
    fn post_pair(
        &mut self,
        queue_pair: &QueuePair,
        payload: Payload<'_>,
        number: u32,
        charge: Charge,
    ) -> Result<(), StreamFailure> {
        let bytes = self.transport.encode(number);
        let message = SendRequest::inline(SendOperation::Send, &bytes);
        let write = match payload {
            Payload::None => {
                self.post_one(queue_pair, message, charge)?;
                return Ok(());
            }
            Payload::Inline(remote, bytes) => {
                SendRequest::inline(SendOperation::Write(remote), bytes)
            }
            Payload::Registered(remote, sge) => SendRequest::new(SendOperation::Write(remote), sge),
        };
        let queued = queue_pair.queue_send(write);
        let queued = queued.map_err(|refused| StreamFailure::refused(refused.error))?;
        let (work, none) = (queued.work(), Charge::default());
        self.in_flight.push_back(InFlight { work, charge: none });
        // One doorbell is for both.
        self.post_request(queue_pair, message, charge)?;
        Ok(())
    }

    /// A request has completed, whose memory it takes. Requests complete in the order of posting.
    pub(super) fn complete(&mut self, completion: &mut Completion, has_succeeded: bool) {
        if !completion.sg_list.is_empty() {
            let memory = std::mem::take(&mut completion.sg_list);
            if let Some(buffer) = memory.into_buffer() {
                self.buffers.give_back(buffer);
            }
        }
        let first = self.in_flight.front();
        // siw may complete a request twice while the connection closes.
        if first.is_none_or(|first| first.work != completion.work) {
            return;
        }
        let Some(InFlight { charge, .. }) = self.in_flight.pop_front() else {
            return;
        };
        self.ring.release(charge.ring_bytes);
        self.updates += charge.update_requests;
        if let Some(sender) = &mut self.sender {
            sender.completed(charge.data_requests);
        }
        if has_succeeded {
            self.acknowledged += u64::from(charge.bytes);
        }
    }

    /// Whether the device still has a request.
    pub(super) fn is_in_flight(&self, work: WorkId) -> bool {
        self.in_flight.iter().any(|one| one.work == work)
    }
}

/// What a peer announces whose memory does not exist.
const BEYOND: StreamFailure = StreamFailure::Protocol(ProtocolError::AddressSpace);

fn remote(write: Write) -> Result<RemoteMemory, StreamFailure> {
    RemoteMemory::new(write.address, write.length.into(), write.key).ok_or(BEYOND)
}
