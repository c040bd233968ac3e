//! Listening and accepting, with any queue pair.

use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{CmAddr, CmId, DeviceId, Event, IdHandle};

use crate::attempt::Attempt;
use crate::close_reason::CloseReason;
use crate::error::{Cause, Error, Result, Target};
use crate::event_loop::{EventLoop, EventQueue, ManagedId, PollSlot, QueuedEvent};
use crate::id_options::IdOptions;
use crate::stage::Stage;
use crate::stop_handle::StopHandle;

mod accept;
mod bind;
mod peer_sequence;
mod siw_sockets;
mod wait;

pub(crate) use accept::{Accepted, Accepting, accept, look_up_peer, request_attrs};
pub(crate) use peer_sequence::PeerSequence;

use siw_sockets::ListenSockets;

/// How to listen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenConfig {
    pub(crate) options: IdOptions,
    pub(crate) backlog: u32,
    pub(crate) max_requests: usize,
}

/// The ids that listen on an address, and their connect requests.
#[derive(Debug)]
pub(crate) struct ListeningIds {
    event_loop: Arc<EventLoop>,
    ids: Vec<ManagedId>,
    options: IdOptions,
    sockets: ListenSockets,
    requests: Arc<EventQueue>,
    address: CmAddr,
    /// The device that it is bound to, once a request has come.
    device: OnceLock<Option<DeviceId>>,
    poll_slot: PollSlot,
}

/// A connect request that was read.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: ManagedId,
    pub(crate) event: Event,
    /// The device of the listener, if it is bound to one: it is that of the request as well.
    pub(crate) device: Option<DeviceId>,
}

impl ListeningIds {
    /// Listens on an address.
    pub(crate) fn bind<A>(
        event_loop: &Arc<EventLoop>,
        config: ListenConfig,
        address: A,
    ) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        let attempt = Attempt::new(event_loop, None, Target::name("the given address"));
        let address = address
            .try_into()
            .map_err(|_| attempt.fail(Stage::Listen, Cause::InvalidAddress))?;
        let requests = EventQueue::for_requests(config.max_requests);
        let attempt = attempt.at_address(address);
        if address.is_loopback() {
            return Err(attempt.fail(Stage::Listen, Cause::LoopbackAddress));
        }
        let ids = bind::listen(&attempt, address, config, &requests)?;
        let port = match (address.port(), ids.first()) {
            (0, Some(first)) => {
                let port = first.id().local_port();
                port.map_err(|error| attempt.fail(Stage::Listen, error))?
            }
            (port, _) => port,
        };
        Ok(Self {
            event_loop: Arc::clone(event_loop),
            sockets: ListenSockets::for_ids(event_loop, &ids),
            ids,
            options: config.options,
            requests,
            address: address.with_port(port),
            device: OnceLock::new(),
            poll_slot: PollSlot::default(),
        })
    }

    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        &self.event_loop
    }

    pub(crate) fn address(&self) -> CmAddr {
        self.address
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &IdHandle> {
        self.ids.iter().map(ManagedId::id)
    }

    pub(crate) fn stop(&self) {
        self.requests.close();
    }

    pub(crate) fn stop_handle(&self) -> StopHandle {
        StopHandle::new(&self.requests)
    }

    /// Moves to another event loop, with the requests that are queued, read or not.
    pub(crate) fn migrate(&mut self, to: &Arc<EventLoop>) -> Result<()> {
        self.end_polling(&self.poll_slot);
        let mut migrated = Ok(());
        for id in &mut self.ids {
            migrated = migrated.and_then(|()| id.migrate(to));
        }
        if let Err(error) = migrated {
            for id in &mut self.ids {
                // Back to where it was, for those that have moved.
                let _ = id.migrate(&self.event_loop);
            }
            return Err(self.attempt().fail(Stage::Migrate, error));
        }
        self.event_loop = Arc::clone(to);
        Ok(())
    }

    pub(crate) fn attempt(&self) -> Attempt {
        Attempt::new(&self.event_loop, None, self.address.into())
    }

    /// What a wait has brought.
    pub(crate) fn wait_result<T>(&self, waited: rdmacm_core::Result<Result<T>>) -> Result<T> {
        waited.map_err(|error| self.attempt().fail(Stage::WaitForRequest, error))?
    }

    /// The slot of those who poll for the listener itself.
    pub(crate) fn poll_slot(&self) -> &PollSlot {
        &self.poll_slot
    }

    /// Ends the wait of the last caller of a slot.
    pub(crate) fn end_polling(&self, slot: &PollSlot) {
        slot.end(&self.event_loop, |key| self.requests.deregister(key));
    }

    /// When to check the sockets.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.sockets.next_check()
    }

    /// The next connect request, if one was read.
    pub(crate) fn take_request(&self) -> Result<Option<Request>> {
        let attempt = &self.attempt();
        while let Some(event) = self.requests.pop() {
            let request = self.handle(attempt, event)?;
            if request.is_some() {
                return Ok(request);
            }
        }
        Ok(None)
    }

    /// Wakes `waker` when something comes.
    pub(crate) fn register(&self, key: u64, waker: &Waker) {
        self.requests.register(key, waker);
    }

    /// Removes a waiter that looks for requests next, and adds it again if it finds none.
    pub(crate) fn withdraw(&self, key: u64) {
        self.requests.withdraw(key);
    }

    /// Removes a waiter.
    pub(crate) fn deregister(&self, key: u64) {
        self.requests.deregister(key);
    }

    fn request(&self, event: Event, child: CmId) -> Request {
        let id = ManagedId::new(&self.event_loop, child, EventQueue::new());
        id.queue().trace().request(id.id(), &event);
        let device = self.device();
        Request { id, event, device }
    }

    /// The device that it is bound to; `None` if it listens on any. The kernel listens on that
    /// device alone then (`cma_ib_listen`, `cma_iw_listen`).
    fn device(&self) -> Option<DeviceId> {
        let [only] = self.ids.as_slice() else {
            return None;
        };
        let query = || only.id().addresses().ok().and_then(|found| found.device);
        *self.device.get_or_init(query)
    }

    /// Checks the sockets, if that is due. Call it after the event loop has run: a request that has
    /// come before a socket was closed is accepted first.
    pub(crate) fn check_sockets(&self) -> Result<()> {
        let Some(check) = self.next_check() else {
            return Ok(());
        };
        let now = self.event_loop.now();
        if now < check {
            return Ok(());
        }
        let checked = self.sockets.check(now);
        checked.map_err(|cause| self.attempt().fail(Stage::WaitForRequest, cause))
    }

    /// The connect request, if the event is one.
    fn handle(&self, attempt: &Attempt, event: QueuedEvent) -> Result<Option<Request>> {
        match event {
            QueuedEvent::Cm(mut event) => {
                if let Some(child) = event.take_child() {
                    // It may have been read where the listener was before.
                    let migrated = child.migrate(self.event_loop.channel());
                    let set_up = migrated.and_then(|()| self.options.apply_to_request(&child));
                    match set_up {
                        Ok(()) => {}
                        // Its device is gone. Others may come, through other devices.
                        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                            return Ok(None);
                        }
                        Err(error) => return Err(attempt.fail(Stage::WaitForRequest, error)),
                    }
                    return Ok(Some(self.request(event, child)));
                }
                // For all waiters, now and later.
                if let Some(reason) = CloseReason::from_event(&event) {
                    self.requests.close_with(reason);
                }
                Ok(None)
            }
            QueuedEvent::CommandFailed(_) => Ok(None),
            QueuedEvent::Closed => Err(self.closed(attempt)),
        }
    }

    /// Why the listener has ended, if it is known to have. Requests that are queued stay there.
    pub(crate) fn failure_at_once(&self) -> Option<Error> {
        self.requests
            .is_closed()
            .then(|| self.closed(&self.attempt()))
    }

    /// The error of a listener that somebody has stopped, which has not failed itself.
    #[cfg(feature = "verbs")]
    pub(crate) fn stopped(&self) -> Option<Error> {
        let failure = self.failure_at_once()?;
        matches!(failure.cause(), Cause::Stopped).then_some(failure)
    }

    /// Rejects the connect requests that are queued.
    #[cfg(feature = "verbs")]
    pub(crate) fn reject_requests(&self) {
        while let Some(event) = self.requests.pop() {
            if matches!(event, QueuedEvent::Closed) {
                return;
            }
            // Dropping a request rejects it.
            drop(event);
        }
    }

    fn closed(&self, attempt: &Attempt) -> Error {
        let failure = self.requests.close_reason();
        let failure = failure.and_then(|reason| reason.failure());
        let cause = failure.map_or(Cause::Stopped, Cause::Event);
        attempt.fail(Stage::WaitForRequest, cause)
    }
}

impl Drop for ListeningIds {
    fn drop(&mut self) {
        if self.event_loop.is_in_child() {
            // The parent would take the check of the inherited sockets for its own.
            return;
        }
        self.end_polling(&self.poll_slot);
        let unsafe_ids = self.sockets.unsafe_ids();
        for (position, id) in self.ids.drain(..).enumerate() {
            if unsafe_ids.contains(&position) {
                id.leak();
            }
        }
    }
}
