//! What moves through a queue pair, and its memory meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use rdmacm_core::{Deadline, QpType, QueuePair as _, Transport};
use rdmacm_verbs::{
    AddressHandle, Buffer, CompletionQueue, Error, Pieces, ProtectionDomain, QpCaps, QueuePair,
    Refused, RemoteMemory, Result, SendOperation, SendRequest, WorkId,
};

use super::device::OpenDevice;
use super::fault::Fault;
use super::message::Message;
use super::options::MessageOptions;
use super::state::{Aftermath, Arrival, Posted, Settled, State};
use super::waiters::Interest;

/// Messages of up to so many bytes go in line, which all soft devices do.
const INLINE: u32 = 64;

/// When the first sign of life is given that is owed; each of the next after four
/// times as long.
const FIRST_NUDGE: Duration = Duration::from_millis(50);
const LAST_NUDGE: Duration = Duration::from_millis(800);

/// A queue pair, what is under way on it, and who waits for that.
///
/// Whoever waits drives: [`pump`](Self::pump) sorts all completions there are,
/// whosever they are, and wakes those they are for.
#[derive(Debug)]
pub(crate) struct Traffic {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    device: Arc<OpenDevice>,
    options: MessageOptions,
    state: Mutex<State>,
}

/// Where a datagram goes.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) address: AddressHandle,
    pub(crate) qp_number: u32,
    pub(crate) qkey: u32,
}

impl Traffic {
    pub(crate) fn new(
        device: &Arc<OpenDevice>,
        qp_type: QpType,
        options: MessageOptions,
    ) -> Result<Arc<Self>> {
        let context = device.context();
        let MessageOptions {
            receives, sends, ..
        } = options;
        let completions = CompletionQueue::options(receives.saturating_add(sends))
            .channel(device.channel())
            .create(context)?;
        let domain = context.create_protection_domain()?;
        let memory = domain.allocate(options.memory().unwrap_or_default())?;
        let pool = memory.into_chunks(options.size.max(1));
        let queue_pair = QueuePair::options(qp_type)
            .caps(QpCaps {
                max_send_wr: sends,
                max_recv_wr: receives,
                max_inline_data: INLINE,
                ..QpCaps::default()
            })
            .protection_domain(&domain)
            .send_queue(&completions)
            .receive_queue(&completions)
            .create(context)?;
        let state = State::new(pool, queue_pair.transport(), Instant::now());
        let traffic = Arc::new(Self {
            queue_pair,
            completions,
            device: Arc::clone(device),
            options,
            state: Mutex::new(state),
        });
        device.admit(traffic.completions.token(), &traffic);
        Ok(traffic)
    }

    pub(crate) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.device
    }

    pub(crate) fn protection_domain(&self) -> &ProtectionDomain {
        self.queue_pair.protection_domain()
    }

    pub(crate) fn options(&self) -> MessageOptions {
        self.options
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.state().deadline
    }

    pub(crate) fn set_deadline(&self, deadline: Deadline) {
        self.state().deadline = deadline;
    }

    /// Posts all receives.
    pub(crate) fn post_all(&self) -> Result<()> {
        for _ in 0..self.options.receives {
            let buffer = self.state().pool.pop();
            if let Some(buffer) = buffer {
                self.queue_pair.post_receive(buffer)?;
            }
        }
        Ok(())
    }

    /// Makes room for one more message. Where the connection is over its memory is
    /// needed no more.
    pub(crate) fn post_receive(&self, buffer: Buffer) {
        drop(self.queue_pair.post_receive(buffer));
    }

    /// Consistent between any two statements, so a panic elsewhere while it was
    /// locked leaves nothing broken.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sorts what has completed.
    pub(crate) fn pump(&self) {
        let mut after = Aftermath::default();
        let mut state = self.state();
        loop {
            match self.completions.poll() {
                Ok(Some(completion)) => state.sort(completion, &mut after),
                Ok(None) => break,
                // What was told once; there may be more behind it.
                Err(Error::Stray { .. }) if state.may_repeat_itself() => {}
                Err(error) => {
                    state.fail(Fault::Device(error), &mut after);
                    break;
                }
            }
        }
        drop(state);
        after.settle();
    }

    /// The completion queue has told that it has something.
    pub(super) fn notified(&self) {
        self.state().armed = false;
        self.pump();
        let waits = !self.state().waiters.is_empty();
        if waits {
            self.arm();
            self.pump();
        }
    }

    /// Makes the next completion tell. What is there already does not: it is looked
    /// for after this.
    fn arm(&self) {
        if std::mem::replace(&mut self.state().armed, true) {
            return;
        }
        if let Err(error) = self.completions.arm(false) {
            let mut after = Aftermath::default();
            self.state().fail(Fault::Device(error), &mut after);
            after.settle();
        }
    }

    pub(crate) fn wait(&self, interest: Interest, key: u64, waker: &Waker) {
        let former = self.state().waiters.add(interest, key, waker);
        drop(former);
        self.arm();
    }

    /// One who waited does so no more; what it was woken for is the next one's.
    pub(crate) fn leave(&self, interest: Interest, key: u64) {
        let mut state = self.state();
        let waiter = state.waiters.remove(interest, key);
        let there = match interest {
            Interest::Arrival => !state.arrived.is_empty(),
            Interest::Room => self.has_room(&state),
            Interest::Quiet => state.posted.is_empty(),
            Interest::Done(_) | Interest::Trouble => false,
        };
        let heir = state.waiters.first(interest).filter(|_| there);
        drop(state);
        drop(waiter);
        if let Some(heir) = heir {
            heir.wake();
        }
    }

    /// The oldest message that has arrived.
    pub(super) fn receive(self: &Arc<Self>) -> Option<Message> {
        let arrival = self.take_arrival();
        arrival.map(|arrival| Message::new(arrival, self))
    }

    pub(crate) fn take_arrival(&self) -> Option<Arrival> {
        self.state().arrived.pop_front()
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        self.state().fault.clone()
    }

    /// Whether a request was refused because the connection is over: by siw's kernel, or
    /// because another's request has failed meanwhile. The event that says why may not
    /// have been read yet.
    pub(super) fn is_over(&self, error: &Error) -> bool {
        match error {
            Error::Command(_) => {
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTCONN))
            }
            Error::InvalidInput { .. } => self.queue_pair.is_broken(),
            _ => false,
        }
    }

    /// Nothing more can be posted; another reason to come says why.
    pub(super) fn refuse(&self, error: Error) {
        let mut after = Aftermath::default();
        self.state().fail(Fault::Refused(error), &mut after);
        after.settle();
    }

    /// Whether the fault is what is told, see [`State::fault_stands`].
    pub(super) fn fault_stands(&self, now: Instant, has_ended: bool) -> bool {
        self.state().fault_stands(now, has_ended)
    }

    /// Until when the peer's departure is waited for, if it is.
    pub(super) fn waits_for_departure(&self, now: Instant) -> Option<Instant> {
        self.state().waits_for_departure(now)
    }

    /// Whether the queue pair is to be moved to ERR for what it still has, now that its
    /// connection has ended: siw keeps until then what was posted after that.
    pub(super) fn is_to_be_flushed(&self) -> bool {
        self.queue_pair.transport() == Transport::IWarp && !self.is_quiet()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.state().posted.is_empty()
    }

    /// Whether a message that was sent has not arrived.
    pub(super) fn has_lost(&self) -> bool {
        self.state().lost
    }

    fn has_room(&self, state: &State) -> bool {
        state.posted.len() < self.options.sends as usize
    }

    /// Copies a message and sends it, a datagram to its destination; `None` where there
    /// is no room.
    pub(crate) fn send(
        &self,
        send: SendOperation,
        bytes: &[u8],
        to: Option<&Destination>,
    ) -> Option<Result<()>> {
        let mut state = self.state();
        if !self.has_room(&state) {
            return None;
        }
        let request = match bytes.len() {
            0 => SendRequest::new(send, Pieces::NONE),
            length if length <= INLINE as usize => SendRequest::inline(send, bytes),
            length => {
                let mut buffer = state.pool.pop()?;
                if let Some(room) = buffer.get_mut(..length) {
                    room.copy_from_slice(bytes);
                }
                match buffer.part(0..length) {
                    Ok(piece) => SendRequest::new(send, piece),
                    Err(refused) => {
                        state.pool.push(refused.returned);
                        return Some(Err(refused.error));
                    }
                }
            }
        };
        let request = match to {
            Some(to) => request.to(&to.address, to.qp_number, to.qkey),
            None => request,
        };
        let posted = self.post(&mut state, request, Posted::Copied);
        Some(posted.map(drop).map_err(|refused| {
            state.pool.extend(refused.returned.into_buffer());
            refused.error
        }))
    }

    /// Posts a request that is waited for; it comes back where there is no room.
    pub(super) fn request(
        &self,
        operation: SendOperation,
        pieces: Pieces,
    ) -> Result<Result<WorkId, Refused<Pieces>>, Pieces> {
        let mut state = self.state();
        if !self.has_room(&state) {
            return Err(pieces);
        }
        let request = SendRequest::new(operation, pieces);
        Ok(self.post(&mut state, request, Posted::Awaited))
    }

    fn post(
        &self,
        state: &mut State,
        request: SendRequest<'_>,
        whose: Posted,
    ) -> Result<WorkId, Refused<Pieces>> {
        let posted = self.queue_pair.post_send(request);
        let work = posted.map_err(|refused| {
            let returned = refused.returned.map(SendRequest::into_pieces);
            Refused {
                error: refused.error,
                returned: returned.unwrap_or_default(),
            }
        })?;
        state.posted.insert(work, whose);
        Ok(work)
    }

    /// What became of a request that is waited for.
    pub(super) fn settled(&self, work: WorkId) -> Option<Settled> {
        self.state().settled.remove(&work)
    }

    /// Nobody waits for a request any more: its memory is freed when it comes back.
    pub(super) fn abandon(&self, work: WorkId) {
        let mut state = self.state();
        if let Some(whose) = state.posted.get_mut(&work) {
            *whose = Posted::Abandoned;
        }
        let settled = state.settled.remove(&work);
        drop(state);
        drop(settled);
    }

    /// Signs of life are owed to the peer, soon after the beginning.
    ///
    /// siw may overlook what arrives while it accepts, until more does: it answers
    /// the peer before it listens to the connection (`siw_accept`).
    pub(crate) fn nudge(&self) {
        let is_iwarp = self.queue_pair.transport() == Transport::IWarp;
        self.state().nudge = is_iwarp.then_some(FIRST_NUDGE);
    }

    /// When the next sign of life is due.
    pub(crate) fn next_beat(&self) -> Option<Instant> {
        let state = self.state();
        let interval = state.nudge.or(self.options.keep_alive)?;
        state.beaten.checked_add(interval)
    }

    /// Gives a sign of life: an empty write, which no memory is needed for.
    pub(crate) fn beat(&self, now: Instant) {
        let mut state = self.state();
        state.beaten = now;
        let nudge = state.nudge.take().and_then(|after| after.checked_mul(4));
        state.nudge = nudge.filter(|after| *after <= LAST_NUDGE);
        let beat = state.beat;
        let under_way = beat.is_some_and(|work| state.posted.contains_key(&work));
        if under_way || !self.has_room(&state) {
            // What is under way finds a dead peer as well.
            return;
        }
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, Pieces::NONE);
        if let Ok(work) = self.post(&mut state, request, Posted::Abandoned) {
            state.beat = Some(work);
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.device.dismiss(self.completions.token());
    }
}
