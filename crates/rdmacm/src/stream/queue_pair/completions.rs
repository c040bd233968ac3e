//! What has completed, and what the peer has sent.

use rdmacm_core::QueuePair as _;
use rdmacm_rsocket::{Control, Message, ProtocolError, Received, Transport};
use rdmacm_verbs::{Completion, Done, Error, SgList, WcOpcode};

use super::{MESSAGE_SIZE, StreamQueuePair};
use crate::data::{Failure, Side};
use crate::stream::failure::StreamFailure;
use crate::stream::receive_queue::ReceiveQueue;
use crate::stream::receive_state::ReceiveState;
use crate::stream::send_state::SendState;
use crate::stream::status::{StreamInterest, Wakers};

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
    pub(super) fn poll_receives(
        &self,
        receive: &mut ReceiveState,
        wanted: usize,
        wakers: &mut Wakers,
    ) {
        for _ in 0..self.options.receive_requests() {
            // If the device is gone, the poll after the last one says so.
            if receive.has_request_failed && !self.device.context().is_gone() {
                return;
            }
            match self.receives.next(wakers) {
                Ok(Some(completion)) => {
                    if let Err(failure) = self.received(receive, completion, wakers) {
                        self.fail(failure, wakers);
                    }
                    if receive.receiver.readable() as usize >= wanted {
                        if self.receives.has_more() {
                            // No notification tells of what was dispatched to this stream.
                            self.status().wake_all(wakers);
                        }
                        return;
                    }
                }
                Ok(None) => return,
                // It was completed before; there may be more completions.
                Err(Error::Stray { .. }) if self.may_complete_twice() => {}
                Err(error) => return self.fail(StreamFailure::device(error), wakers),
            }
        }
        // Perhaps there are more.
        self.status().wake_all(wakers);
    }

    /// Handles a message of the peer, or the failure of a receive request.
    #[inline(never)]
    fn received(
        &self,
        receive: &mut ReceiveState,
        completion: Completion,
        wakers: &mut Wakers,
    ) -> Result<(), StreamFailure> {
        let done = completion.result().map_err(|error| {
            receive.has_request_failed = !self.receives.is_shared();
            let fabric = self.queue_pair.transport();
            StreamFailure::from(Failure::from_completion(error, fabric))
        })?;
        if self.has_failed() && self.has_peer_violated() {
            // What the peer says from then on has no meaning.
            return Ok(());
        }
        let (word, memory) = word(self.transport, done, completion.sg_list);
        if let ReceiveQueue::Own(_) = self.receives {
            // Once the connection is closed, the memory is freed instead.
            let _ = self.queue_pair.post_receive(memory);
        }
        let word = word.ok_or(StreamFailure::Protocol(ProtocolError::NoMessage))?;
        // A message with immediate data that announces nothing is a write of no bytes.
        let may_announce = self.is_iwarp() || done.bytes > 0;
        let handled = self.handle(receive, Message::decode(word), may_announce, wakers);
        handled.map_err(StreamFailure::Protocol)
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
        if !std::mem::replace(&mut receive.has_heard_peer, true) {
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
            let _ = self.arm(Side::Sends, wakers);
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
                send.complete(completion);
                if let Err(error) = completion.result() {
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
                Err(Error::Stray { .. }) if self.may_complete_twice() => {}
                Err(error) => {
                    self.fail(StreamFailure::device(error), wakers);
                    break;
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
fn word(transport: Transport, done: Done, sg_list: SgList) -> (Option<u32>, SgList) {
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
