//! The state of an id, shared by its owner, its handles and its commands in flight.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};

use rdmacm_abi::{Ece, PortSpace, QpType};

use crate::channel_state::{ChannelState, EventTarget, LocalEvent, Registration};
use crate::error::{Error, Result};
use crate::queue_pair::DepthLimits;
use crate::token::Token;
use crate::ucma::NO_ID;

mod gate;
mod in_flight;
mod membership;
mod query_cache;
mod resolution_slot;

use gate::Gate;
pub(crate) use in_flight::InFlight;
pub(crate) use membership::Membership;
use query_cache::QueryCache;
pub(crate) use resolution_slot::ResolutionSlot;

/// A channel of ids.
pub(crate) type Channel = ChannelState<IdState>;

/// The channel an id is on.
#[derive(Clone)]
struct Location {
    channel: Arc<Channel>,
    /// Counts the migrations: an id may leave a channel and come back.
    migrations: u64,
}

/// The parameters of the connect request that created an id.
#[derive(Clone, Copy)]
pub(crate) struct RequestParams {
    pub(crate) depths: DepthLimits,
    pub(crate) ece: Ece,
}

/// The state of an id.
pub(crate) struct IdState {
    location: RwLock<Location>,
    /// The channels the id was on: one of their readers may have an event of it.
    previous: Mutex<Vec<Weak<Channel>>>,
    /// Those among them with connect requests that may be unread. Their files stay
    /// open for the children of these requests.
    request_sources: Mutex<Vec<Arc<Channel>>>,
    listens: AtomicBool,
    token: Token,
    /// [`NO_ID`] until the kernel has created the id.
    kernel_id: AtomicU32,
    port_space: PortSpace,
    qp_type: QpType,
    request: Option<RequestParams>,
    /// How many messages to the peer still need an answer, as far as the caller has
    /// read events.
    unanswered: AtomicU32,
    gate: Gate,
    cache: QueryCache,
    groups: Mutex<Vec<Arc<Membership>>>,
    resolution: ResolutionSlot,
}

impl IdState {
    /// The state of an id that the kernel is about to create, registered for its
    /// events.
    pub(crate) fn register_new(
        channel: &Arc<Channel>,
        port_space: PortSpace,
        qp_type: QpType,
        request: Option<RequestParams>,
    ) -> Arc<Self> {
        let state = Arc::new(Self {
            location: RwLock::new(Location {
                channel: Arc::clone(channel),
                migrations: 0,
            }),
            previous: Mutex::default(),
            request_sources: Mutex::default(),
            listens: AtomicBool::new(false),
            token: Token::new(),
            kernel_id: AtomicU32::new(NO_ID),
            port_space,
            qp_type,
            request,
            unanswered: AtomicU32::new(0),
            gate: Gate::default(),
            cache: QueryCache::default(),
            groups: Mutex::default(),
            resolution: ResolutionSlot::default(),
        });
        state.register(channel);
        state
    }

    pub(crate) fn set_kernel_id(&self, kernel_id: u32) {
        self.kernel_id.store(kernel_id, Ordering::Release);
    }

    pub(crate) fn kernel_id(&self) -> u32 {
        self.kernel_id.load(Ordering::Acquire)
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn port_space(&self) -> PortSpace {
        self.port_space
    }

    pub(crate) fn qp_type(&self) -> QpType {
        self.qp_type
    }

    pub(crate) fn cache(&self) -> &QueryCache {
        &self.cache
    }

    pub(crate) fn resolution(&self) -> &ResolutionSlot {
        &self.resolution
    }

    /// The depths of the connect request that created this id.
    pub(crate) fn requested_depths(&self) -> Option<DepthLimits> {
        self.request.map(|request| request.depths)
    }

    /// The ECE options of the connect request that created this id; zeros without
    /// one.
    pub(crate) fn requested_ece(&self) -> Ece {
        self.request.map(|request| request.ece).unwrap_or_default()
    }

    /// Whether a message to the peer still needs an answer.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.unanswered.load(Ordering::Acquire) != 0
    }

    /// A message to the peer is about to be sent.
    pub(crate) fn expect_answer(&self) {
        self.unanswered.fetch_add(1, Ordering::AcqRel);
    }

    /// The message was not sent. (The answer to another one may have been read
    /// meanwhile.)
    pub(crate) fn expect_no_answer(&self) {
        let decrement = |count: u32| count.checked_sub(1);
        let _ = self
            .unanswered
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, decrement);
    }

    /// The answer has been read.
    pub(crate) fn set_answered(&self) {
        self.unanswered.store(0, Ordering::Release);
    }

    /// From now on connect requests may arrive.
    pub(crate) fn set_listening(&self) {
        self.listens.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.gate.is_closed()
    }

    // The locked values are valid between any two statements, so a panic that
    // poisons a lock leaves them valid.

    pub(crate) fn channel(&self) -> Arc<Channel> {
        Arc::clone(&self.location().channel)
    }

    /// The id's channel. The id does not migrate while the guard is held.
    fn location(&self) -> RwLockReadGuard<'_, Location> {
        self.location.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn previous(&self) -> MutexGuard<'_, Vec<Weak<Channel>>> {
        self.previous.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request_sources(&self) -> MutexGuard<'_, Vec<Arc<Channel>>> {
        self.request_sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Vec<Arc<Membership>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the id was on `channel` before.
    fn was_on(&self, channel: &Arc<Channel>) -> bool {
        let channel = Arc::downgrade(channel);
        self.previous().iter().any(|one| one.ptr_eq(&channel))
    }

    /// Records that the id leaves `channel`.
    fn record_departure(&self, channel: &Arc<Channel>) {
        if !self.was_on(channel) {
            self.previous().push(Arc::downgrade(channel));
        }
        let mut sources = self.request_sources();
        let listens = self.listens.load(Ordering::Acquire);
        if listens && !sources.iter().any(|one| Arc::ptr_eq(one, channel)) {
            sources.push(Arc::clone(channel));
        }
    }

    /// Moves the id to another channel if `migrate` succeeds, which gets both
    /// channels. Commands that begin meanwhile block until the location is known.
    pub(crate) fn relocate(
        self: &Arc<Self>,
        to: &Arc<Channel>,
        migrate: impl FnOnce(&Channel, &Channel) -> Result<()>,
    ) -> Result<()> {
        let mut location = self
            .location
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let from = Arc::clone(&location.channel);
        if Arc::ptr_eq(&from, to) {
            return Ok(());
        }
        // Before the migration: a connect request that is read at once needs its
        // source, and the kernel may report on the new channel at once. The id stays
        // registered on the old one, whose readers may have an event of it.
        self.record_departure(&from);
        let was_there = self.was_on(to);
        self.register(to);
        if let Err(error) = migrate(&from, to) {
            if !was_there {
                self.unregister(to);
            }
            return Err(error);
        }
        from.move_local_events(self.token, to);
        location.channel = Arc::clone(to);
        location.migrations = location.migrations.wrapping_add(1);
        // The kernel wakes no reader for events that moved.
        to.ucma.notify();
        Ok(())
    }

    /// The channels other than `channel` through which a connect request may have
    /// come, the latest first.
    pub(crate) fn other_request_sources(&self, channel: &Arc<Channel>) -> Vec<Arc<Channel>> {
        let sources = self.request_sources();
        let others = sources
            .iter()
            .rev()
            .filter(|one| !Arc::ptr_eq(one, channel));
        others.cloned().collect()
    }

    /// Registers a group for its events, on this channel and those the id migrates
    /// to.
    ///
    /// # Errors
    /// [`Error::IdGone`] if the owner has dropped the id: its registrations have
    /// been removed, and a new one would stay.
    pub(crate) fn add_group(self: &Arc<Self>, group: &Arc<Membership>) -> Result<()> {
        let location = self.location();
        let mut registrations = location.channel.registrations();
        // Checked under the lock that `close` takes after it has closed the gate.
        if !self.is_open() {
            return Err(Error::IdGone);
        }
        registrations.insert(group.token(), self.registration(EventTarget::Group));
        self.groups().push(Arc::clone(group));
        Ok(())
    }

    /// Removes a group and its registrations.
    pub(crate) fn remove_group(&self, group: &Arc<Membership>) {
        // Held so that the id does not migrate with the group meanwhile.
        let location = self.location();
        self.groups().retain(|one| !Arc::ptr_eq(one, group));
        location.channel.registrations().remove(&group.token());
        for channel in self.previous().iter().filter_map(Weak::upgrade) {
            channel.registrations().remove(&group.token());
        }
    }

    fn registration(self: &Arc<Self>, target: EventTarget) -> Registration<Self> {
        Registration {
            id: Arc::downgrade(self),
            target,
        }
    }

    /// Registers the id and its groups for their events on `channel`.
    fn register(self: &Arc<Self>, channel: &Channel) {
        let mut registrations = channel.registrations();
        registrations.insert(self.token, self.registration(EventTarget::Id));
        for group in self.groups().iter() {
            registrations.insert(group.token(), self.registration(EventTarget::Group));
        }
    }

    fn unregister(&self, channel: &Channel) {
        let mut registrations = channel.registrations();
        registrations.remove(&self.token);
        for group in self.groups().iter() {
            registrations.remove(&group.token());
        }
    }

    /// Removes the registrations on every channel.
    pub(crate) fn unregister_everywhere(&self) {
        self.unregister(&self.channel());
        for channel in self.previous().iter().filter_map(Weak::upgrade) {
            self.unregister(&channel);
        }
    }

    /// Begins a command; `None` if the owner has dropped the id.
    pub(crate) fn enter(self: Arc<Self>) -> Option<InFlight> {
        self.gate.enter().then(|| InFlight::new(self))
    }

    /// Ends a command.
    fn leave(&self) {
        if self.gate.leave() {
            self.destroy();
        }
    }

    /// Closes the id for its owner: no event is delivered and no command begins
    /// afterwards. Destroys the id, or leaves that to the last command in flight.
    pub(crate) fn close(&self) {
        let is_idle = self.gate.close();
        self.unregister_everywhere();
        self.channel().discard_local_events(self.token);
        if is_idle {
            self.destroy();
        }
    }

    fn destroy(&self) {
        self.channel().destroy(self.kernel_id());
    }

    /// Queues a local event of this id on its channel.
    pub(crate) fn push_local_event(&self, event: rdmacm_abi::EventNumber, status: i32) {
        self.location().channel.push_local_event(LocalEvent {
            token: self.token,
            event,
            status,
        });
    }
}

impl fmt::Debug for IdState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CmId")
            .field("kernel_id", &self.kernel_id())
            .field("port_space", &self.port_space)
            .field("qp_type", &self.qp_type)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}
