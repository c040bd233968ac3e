//! What has completed, and what the peer has sent.

use rdmacm_core::QueuePair as _;
use rdmacm_rsocket::{Control, Message, ProtocolError, Received, Transport};
use rdmacm_verbs::{
    Completion, CompletionError, CompletionInfo, CompletionQueue, Error, SgList, WcOpcode,
};

use super::{MESSAGE_SIZE, StreamQueuePair};
use crate::data::{CqKind, Failure};
use crate::event_loop::Wakers;
use crate::stream::failure::StreamFailure;
use crate::stream::options::{MESSAGES_WITHOUT_CREDIT, SPARE_RECEIVES};
use crate::stream::receive_queue::{ReceiveQueue, SharedReceivesRegistration};
use crate::stream::receive_state::ReceiveState;
use crate::stream::send_state::SendState;
use crate::stream::status::StreamInterest;

/// How many messages are handled one by one before memory is taken for many: a stream that receives
/// few keeps none.
const MAX_SINGLE: u32 = 3;

/// How many messages are handled at once after that. Their receive requests are posted afterwards:
/// others are there meanwhile for messages that need no credit.
const MAX_MESSAGES: u8 = 8;
const _: () = assert!(MAX_MESSAGES as u32 + MESSAGES_WITHOUT_CREDIT <= SPARE_RECEIVES);

/// How many completions of writes are taken at once.
const MAX_COMPLETIONS: usize = 16;

/// All that has arrived.
pub(super) const ALL: usize = usize::MAX;

impl StreamQueuePair {
    /// Handles what has completed in both queues.
    pub(super) fn poll_all(&self, wakers: &mut Wakers) {
        let mut receive = self.receive.lock();
        self.poll_receives(&mut receive, ALL, wakers);
        let mut send = self.send.lock();
        self.poll_sends(&mut send, wakers);
        drop(send);
        self.update_peer(&mut receive, wakers);
    }

    /// Handles what has completed in the receive queue, until as many bytes are readable as are
    /// wanted. A peer that sends without end delays the caller for no longer than one queue
    /// takes.
    #[inline]
    pub(super) fn poll_receives(
        &self,
        receive: &mut ReceiveState,
        wanted: usize,
        wakers: &mut Wakers,
    ) {
        let is_complete = match &self.receives {
            ReceiveQueue::Own(queue) => self.poll_own(queue, receive, wanted, wakers),
            ReceiveQueue::Shared(shared) => self.poll_shared(shared, receive, wanted, wakers),
        };
        if !is_complete {
            // Perhaps there are more, of which no notification tells.
            self.status().wake_all(wakers);
        }
    }

    /// Returns whether there are enough bytes, or no more completions.
    #[inline(never)]
    fn poll_own(
        &self,
        queue: &CompletionQueue,
        receive: &mut ReceiveState,
        wanted: usize,
        wakers: &mut Wakers,
    ) -> bool {
        for _ in 0..MAX_SINGLE {
            if self.receives_no_more(receive) {
                return true;
            }
            match queue.poll() {
                Ok(Some(mut completion)) => {
                    let memory = self.received(receive, &mut completion, wakers);
                    if let Some(memory) = memory {
                        // Once the connection is closed, the memory is freed instead.
                        let _ = self.queue_pair.post_receive(memory);
                    }
                }
                Ok(None) => return true,
                Err(error) => {
                    if self.failed_poll(error, wakers) {
                        return true;
                    }
                }
            }
            if receive.receiver.readable() as usize >= wanted || !queue.has_completions() {
                return true;
            }
        }
        self.poll_others(queue, receive, wanted, wakers)
    }

    /// As [`poll_own`](Self::poll_own), of many completions.
    fn poll_others(
        &self,
        queue: &CompletionQueue,
        receive: &mut ReceiveState,
        wanted: usize,
        wakers: &mut Wakers,
    ) -> bool {
        let mut left = self.options.receive_requests() as usize;
        while left > 0 {
            if self.receives_no_more(receive) || !queue.has_completions() {
                return true;
            }
            let limit = left.min(MAX_MESSAGES.into());
            match self.poll_batch(queue, receive, limit, wakers) {
                Ok(_) if receive.receiver.readable() as usize >= wanted => return true,
                Ok(0) => return true,
                Ok(count) => left -= count,
                Err(error) => {
                    if self.failed_poll(error, wakers) {
                        return true;
                    }
                    left -= 1;
                }
            }
        }
        false
    }

    /// Handles up to `limit` messages, and posts their receive requests together. Returns how many.
    fn poll_batch(
        &self,
        queue: &CompletionQueue,
        receive: &mut ReceiveState,
        limit: usize,
        wakers: &mut Wakers,
    ) -> Result<usize, Error> {
        let mut completions = std::mem::take(&mut receive.completions);
        let polled = queue.poll_many(&mut completions, limit);
        for completion in &mut completions {
            let memory = self.received(receive, completion, wakers);
            receive.completed.extend(memory);
        }
        // Nothing is left in them to drop.
        completions.drain(..).for_each(std::mem::forget);
        receive.completions = completions;
        // Once the connection is closed, the memory is freed instead.
        let _ = self.queue_pair.post_receives(&mut receive.completed);
        receive.completed.clear();
        polled
    }

    /// Whether a receive request has failed. If the device is gone, the poll after the last one
    /// says so.
    fn receives_no_more(&self, receive: &ReceiveState) -> bool {
        receive.has_request_failed && !self.device.context().is_closed()
    }

    /// Returns whether the stream has failed. It has not if a request has completed twice: there may
    /// be other completions.
    #[cold]
    fn failed_poll(&self, error: Error, wakers: &mut Wakers) -> bool {
        let has_failed = !(matches!(error, Error::Stray { .. }) && self.may_complete_twice());
        if has_failed {
            self.fail(StreamFailure::device(error), wakers);
        }
        has_failed
    }

    /// As [`poll_own`](Self::poll_own), of what was dispatched to this stream.
    fn poll_shared(
        &self,
        shared: &SharedReceivesRegistration,
        receive: &mut ReceiveState,
        wanted: usize,
        wakers: &mut Wakers,
    ) -> bool {
        for _ in 0..self.options.receive_requests() {
            match shared.next(wakers) {
                // Its request is the queue's, which posts it again.
                Ok(Some(mut completion)) => drop(self.received(receive, &mut completion, wakers)),
                Ok(None) => return true,
                Err(error) => return self.failed_poll(error, wakers),
            }
            if receive.receiver.readable() as usize >= wanted {
                return !shared.has_more();
            }
        }
        false
    }

    /// Handles a message of the peer, or the failure of a receive request. Returns the request's
    /// memory, for a request that is to be posted again.
    #[inline(never)]
    fn received(
        &self,
        receive: &mut ReceiveState,
        completion: &mut Completion,
        wakers: &mut Wakers,
    ) -> Option<SgList> {
        let memory = std::mem::take(&mut completion.sg_list);
        let done = match completion.result() {
            Ok(done) => done,
            Err(error) => {
                self.failed_receive(receive, error, wakers);
                return None;
            }
        };
        if self.has_failed() && self.has_peer_violated() {
            // What the peer says from then on has no meaning.
            return None;
        }
        let (word, memory) = word(self.transport, done, memory);
        // A message with immediate data that announces nothing is a write of no bytes.
        let may_announce = self.is_iwarp() || done.bytes > 0;
        let handled = match word {
            Some(word) => self.handle(receive, Message::decode(word), may_announce, wakers),
            None => Err(ProtocolError::NoMessage),
        };
        if let Err(violation) = handled {
            self.fail(StreamFailure::Protocol(violation), wakers);
        }
        Some(memory)
    }

    #[cold]
    fn failed_receive(
        &self,
        receive: &mut ReceiveState,
        error: CompletionError,
        wakers: &mut Wakers,
    ) {
        receive.has_request_failed = !self.receives.is_shared();
        let failure = Failure::from_completion(error, self.queue_pair.transport());
        self.fail(failure.into(), wakers);
    }

    /// Whether the peer has violated the protocol.
    fn has_peer_violated(&self) -> bool {
        let status = self.status();
        matches!(status.failure(), Some(StreamFailure::Protocol(_)))
    }

    fn handle(
        &self,
        receive: &mut ReceiveState,
        message: Message,
        may_announce: bool,
        wakers: &mut Wakers,
    ) -> Result<(), ProtocolError> {
        let is_data = matches!(message, Message::Data(_));
        // Before they count: who has read the end reads no more.
        if is_data && !self.status.is_open() && self.status().shutdown.peer_finished() {
            return Err(ProtocolError::AfterShutdown);
        }
        let received = receive.receiver.message(message)?;
        if !std::mem::replace(&mut receive.has_received_from_peer, true) {
            self.peer_has_sent(wakers);
        }
        if is_data && self.status.has_waiters() {
            self.status().wake_first(StreamInterest::Readable, wakers);
        }
        match received {
            Some(Received::Map(index)) => {
                let entry = receive.map_entry(index);
                self.send.lock().peer_maps.set(index, entry);
            }
            Some(Received::Data(_)) => {}
            None => return self.handle_control(receive, message, may_announce, wakers),
        }
        Ok(())
    }

    /// From now on the accepting side may send on iWARP, and what the connecting side sends wakes
    /// up its peer.
    fn peer_has_sent(&self, wakers: &mut Wakers) {
        if !self.is_iwarp() {
            return;
        }
        let mut send = self.send.lock();
        send.is_answer_due = true;
        if !std::mem::replace(&mut send.may_send, true) {
            self.status().wake_all(wakers);
        }
        if send.is_shutdown_due {
            self.send_control(&mut send, Control::Shutdown, wakers);
        }
    }

    fn handle_control(
        &self,
        receive: &mut ReceiveState,
        message: Message,
        may_announce: bool,
        wakers: &mut Wakers,
    ) -> Result<(), ProtocolError> {
        let mut send = self.send.lock();
        let waited_for_peer = send.waits_for_peer();
        match message {
            Message::Credits(limit) => {
                if let Some(sender) = &mut send.sender {
                    sender.updated(limit, may_announce, receive.table_mut())?;
                }
                if self.status.has_waiters() {
                    self.status().made_progress(wakers);
                }
            }
            Message::Control(control) => {
                let mut status = self.status();
                status.shutdown.receive(control);
                status.wake_all(wakers);
            }
            _ => {}
        }
        // A writer that waits for this side's room now need not wait for the peer too: it looks
        // whether there is room, of which it was perhaps not told.
        let may_write = send.is_writable() || waited_for_peer && !send.waits_for_peer();
        if may_write && self.status.has_waiters() {
            self.status().wake_first(StreamInterest::Writable, wakers);
        }
        Ok(())
    }

    /// Sends the updates that are due, unless the peer sends no more.
    pub(super) fn update_peer(&self, receive: &mut ReceiveState, wakers: &mut Wakers) {
        while receive.receiver.is_update_due() {
            let mut send = self.send.lock();
            let requests = receive.receiver.requests_per_update();
            if self.sends_no_updates() || !self.has_room_for_update(&mut send, requests, wakers) {
                return;
            }
            let Some(update) = receive.receiver.update() else {
                return;
            };
            if let Err(failure) = send.update(&self.queue_pair, update) {
                return self.fail(failure, wakers);
            }
        }
    }

    /// If there is no room, the notification of the next completion makes some.
    fn has_room_for_update(
        &self,
        send: &mut SendState,
        requests: u32,
        wakers: &mut Wakers,
    ) -> bool {
        if send.has_room_for_update(requests) {
            return true;
        }
        self.poll_sends(send, wakers);
        if send.may_send && !send.has_room_for_update(requests) {
            let _ = self.arm(CqKind::Sends, wakers);
            self.poll_sends(send, wakers);
        }
        send.has_room_for_update(requests)
    }

    fn sends_no_updates(&self) -> bool {
        if self.status.is_open() {
            return false;
        }
        let shutdown = self.status().shutdown;
        self.has_failed() || shutdown.peer_finished() || shutdown.is_over()
    }

    /// Handles what has completed in the send queue.
    pub(super) fn poll_sends(&self, send: &mut SendState, wakers: &mut Wakers) {
        if send.is_idle() {
            return;
        }
        let had_room = send.is_writable();
        let mut completions = std::mem::take(&mut send.completions);
        let mut has_any = false;
        loop {
            let polled = self.sends.poll_many(&mut completions, MAX_COMPLETIONS);
            has_any |= !completions.is_empty();
            for completion in &mut completions {
                let result = completion.result();
                send.complete(completion, result.is_ok());
                if let Err(error) = result {
                    let fabric = self.queue_pair.transport();
                    let failure = Failure::from_completion(error, fabric);
                    self.fail(failure.into(), wakers);
                }
            }
            // Nothing is left in them to drop.
            completions.drain(..).for_each(std::mem::forget);
            match polled {
                Ok(MAX_COMPLETIONS) => {}
                Ok(_) => break,
                Err(error) => {
                    if self.failed_poll(error, wakers) {
                        break;
                    }
                }
            }
        }
        send.completions = completions;
        if !has_any || !self.status.has_waiters() {
            return;
        }
        let status = self.status();
        if !had_room && send.is_writable() {
            status.wake_first(StreamInterest::Writable, wakers);
        }
        if send.is_idle() {
            status.wake_first(StreamInterest::Flushed, wakers);
        }
        status.made_progress(wakers);
    }

    /// Whether siw may complete a request twice: it does so while a connection closes.
    fn may_complete_twice(&self) -> bool {
        self.is_iwarp() && self.has_failed()
    }
}

/// The message of a completed receive request, and its memory.
fn word(transport: Transport, done: CompletionInfo, sg_list: SgList) -> (Option<u32>, SgList) {
    match transport {
        Transport::Immediate => {
            let is_write = done.opcode == WcOpcode::RECV_RDMA_WITH_IMM;
            (done.immediate.filter(|_| is_write), sg_list)
        }
        Transport::Send => {
            let Some(buffer) = sg_list.into_buffer() else {
                return (None, SgList::NONE);
            };
            let is_message = done.bytes as usize == MESSAGE_SIZE;
            let bytes = buffer.first_chunk().filter(|_| is_message);
            let word = bytes.map(|bytes| transport.decode(*bytes));
            (word, buffer.into())
        }
    }
}
