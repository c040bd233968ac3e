//! The state of an id, shared by its owner, its handles and its commands in flight.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::{Ece, PortSpace, QpType};

use crate::address::{CmAddr, Family};
use crate::channel_state::{ChannelState, LocalEvent};
use crate::error::{Error, Result};
use crate::id_handle::IdHandle;
use crate::operation::Operation;
use crate::queue_pair::DepthLimits;
use crate::token::Token;
use crate::ucma::NO_ID;

mod answering;
mod in_flight;
mod in_flight_count;
mod location;
mod membership;
mod query_cache;
mod resolution_slot;

use answering::Answering;
pub(crate) use in_flight::InFlight;
use in_flight_count::InFlightCount;
use location::{CurrentLocation, Location};
pub(crate) use membership::Membership;
use query_cache::QueryCache;
pub(crate) use resolution_slot::{Outcome, ResolutionSlot};

/// A channel of ids.
pub(crate) type Channel = ChannelState<IdState>;

/// The parameters of the connect request that created an id.
#[derive(Clone, Copy)]
pub(crate) struct RequestParams {
    /// `None` for datagrams.
    pub(crate) depths: Option<DepthLimits>,
    pub(crate) ece: Ece,
}

/// The state of an id: one allocation, with a handle to itself that its owner lends
/// and events copy. What few ids have is allocated when they need it.
pub(crate) struct IdState {
    handle: IdHandle,
    location: CurrentLocation,
    in_flight: InFlightCount,
    /// [`NO_ID`] until the kernel has created the id.
    kernel_id: AtomicU32,
    answering: Answering,
    listens: AtomicBool,
    has_given_path: AtomicBool,
    may_be_native: AtomicBool,
    cache: QueryCache,
    request: Option<RequestParams>,
    rare: OnceLock<Box<RareState>>,
}

/// What few ids have.
#[derive(Default)]
struct RareState {
    /// The channels the id was on: one of their readers may have an event of it.
    previous: Mutex<Vec<Weak<Channel>>>,
    /// Those among them with connect requests that may be unread. Their files stay
    /// open for the children of these requests.
    request_sources: Mutex<Vec<Arc<Channel>>>,
    groups: Mutex<Vec<Arc<Membership>>>,
    resolution: ResolutionSlot,
}

impl RareState {
    fn previous(&self) -> MutexGuard<'_, Vec<Weak<Channel>>> {
        self.previous.lock()
    }

    fn request_sources(&self) -> MutexGuard<'_, Vec<Arc<Channel>>> {
        self.request_sources.lock()
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Arc<Membership>>> {
        self.groups.lock()
    }

    /// Whether the id was on `channel` before.
    fn was_on(&self, channel: &Arc<Channel>) -> bool {
        let channel = Arc::downgrade(channel);
        self.previous().iter().any(|one| one.ptr_eq(&channel))
    }
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
        let state = Arc::new_cyclic(|state| Self {
            handle: IdHandle::new(Weak::clone(state), port_space, qp_type),
            location: CurrentLocation::new(channel),
            in_flight: InFlightCount::default(),
            kernel_id: AtomicU32::new(NO_ID),
            answering: Answering::default(),
            listens: AtomicBool::new(false),
            has_given_path: AtomicBool::new(false),
            may_be_native: AtomicBool::new(false),
            cache: QueryCache::default(),
            request,
            rare: OnceLock::new(),
        });
        state.register(channel);
        state
    }

    /// A handle to this id.
    pub(crate) fn handle(&self) -> &IdHandle {
        &self.handle
    }

    pub(crate) fn set_kernel_id(&self, kernel_id: u32) {
        self.kernel_id.store(kernel_id, Ordering::Release);
    }

    pub(crate) fn kernel_id(&self) -> u32 {
        self.kernel_id.load(Ordering::Acquire)
    }

    pub(crate) fn token(&self) -> Token {
        self.handle.token()
    }

    pub(crate) fn cache(&self) -> &QueryCache {
        &self.cache
    }

    pub(crate) fn resolution(&self) -> &ResolutionSlot {
        &self.rare().resolution
    }

    fn rare(&self) -> &RareState {
        self.rare.get_or_init(Box::default)
    }

    /// Whether a connect request created this id.
    pub(crate) fn is_child(&self) -> bool {
        self.request.is_some()
    }

    /// The depths of the connect request that created this id.
    pub(crate) fn requested_depths(&self) -> Option<DepthLimits> {
        self.request.and_then(|request| request.depths)
    }

    /// The ECE options of the connect request that created this id; zeros without
    /// one.
    pub(crate) fn requested_ece(&self) -> Ece {
        self.request.map(|request| request.ece).unwrap_or_default()
    }

    /// Which messages to the peer are in flight.
    pub(crate) fn answering(&self) -> &Answering {
        &self.answering
    }

    /// From now on connect requests may arrive. Waits for the end of a migration, which may have
    /// found that none do, and keeps no source of theirs.
    pub(crate) fn set_listening(&self) {
        self.listens.store(true, Ordering::Release);
        drop(self.location.lock());
    }

    /// The caller is about to set a path record.
    pub(crate) fn set_given_path(&self) {
        self.has_given_path.store(true, Ordering::Release);
    }

    /// The caller is about to bind it to this address, or to resolve it.
    pub(crate) fn note_address(&self, address: &CmAddr) {
        if address.family() == Family::Ib {
            self.may_be_native.store(true, Ordering::Release);
        }
    }

    /// Whether its addresses may be InfiniBand addresses.
    pub(crate) fn may_be_native(&self) -> bool {
        self.may_be_native.load(Ordering::Acquire)
    }

    /// Whether the path records may be the caller's.
    pub(crate) fn has_given_path(&self) -> bool {
        self.has_given_path.load(Ordering::Acquire)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.in_flight.is_closed()
    }

    pub(crate) fn channel(&self) -> Arc<Channel> {
        self.location.get().channel
    }

    /// The multicast groups that the id is a member of.
    pub(crate) fn groups(&self) -> MutexGuard<'_, Vec<Arc<Membership>>> {
        self.rare().groups()
    }

    /// Records that the id leaves `channel`.
    fn record_departure(&self, channel: &Arc<Channel>) {
        let rare = self.rare();
        if !rare.was_on(channel) {
            let mut previous = rare.previous();
            // A channel that is gone has no reader.
            previous.retain(|one| one.strong_count() > 0);
            previous.push(Arc::downgrade(channel));
        }
        let mut sources = rare.request_sources();
        let listens = self.listens.load(Ordering::Acquire);
        if listens && !sources.iter().any(|one| Arc::ptr_eq(one, channel)) {
            sources.push(Arc::clone(channel));
        }
    }

    /// Moves the id to another channel if `migrate` succeeds, which gets both
    /// channels. Commands that begin meanwhile block until the location is known, or are
    /// refused and find it then. The owner cannot drop the id meanwhile.
    pub(crate) fn relocate(
        self: &Arc<Self>,
        to: &Arc<Channel>,
        migrate: impl FnOnce(&Channel, &Channel) -> Result<()>,
    ) -> Result<()> {
        let location = self.location.lock_to_migrate();
        let from = Arc::clone(&location.channel);
        if Arc::ptr_eq(&from, to) {
            return Ok(());
        }
        // Before the migration: a connect request that is read at once needs its
        // source, and the kernel may report on the new channel at once. The id stays
        // registered on the old one, whose readers may have an event of it.
        self.record_departure(&from);
        to.add_request_sources(&self.other_request_sources(to));
        let was_there = self.rare().was_on(to);
        self.register(to);
        if let Err(error) = migrate(&from, to) {
            if !was_there {
                self.unregister(to);
            }
            return Err(error);
        }
        from.move_local_events(self.token(), to);
        self.location.migrated(location, to);
        // The kernel wakes no reader for events that moved.
        to.ucma.notify();
        Ok(())
    }

    /// The channels other than `channel` through which a connect request may have
    /// come, the latest first.
    pub(crate) fn other_request_sources(&self, channel: &Arc<Channel>) -> Vec<Arc<Channel>> {
        let Some(rare) = self.rare.get() else {
            return Vec::new();
        };
        let sources = rare.request_sources();
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
    /// [`Error::IdDestroyed`] if the owner has dropped the id: its registrations have
    /// been removed, and a new one would stay.
    /// [`Error::InvalidInput`] if the id is a member already: to leave a membership, the kernel
    /// looks for the latest one with its address, and frees another.
    pub(crate) fn add_group(self: &Arc<Self>, group: &Arc<Membership>) -> Result<()> {
        let location = self.location.lock();
        let mut registrations = location.channel.registrations();
        // Checked under the lock that `close` takes after it has closed the count.
        if !self.is_open() {
            return Err(Error::IdDestroyed);
        }
        let (address, mut groups) = (group.address(), self.groups());
        if groups.iter().any(|one| one.address() == address) {
            let operation = Operation::JoinMulticast(address);
            return Err(Error::invalid(operation, "the id is a member already"));
        }
        registrations.insert(group.token(), Arc::downgrade(self));
        groups.push(Arc::clone(group));
        Ok(())
    }

    /// Removes a group's registrations: from now on its events are dropped.
    pub(crate) fn unregister_group(&self, group: &Membership) {
        // Held so that the id does not migrate with the group meanwhile.
        let location = self.location.lock();
        location.channel.registrations().remove(group.token());
        for channel in self.rare().previous().iter().filter_map(Weak::upgrade) {
            channel.registrations().remove(group.token());
        }
    }

    /// Removes a group that the kernel does not have any more.
    pub(crate) fn remove_group(&self, group: &Arc<Membership>) {
        self.groups().retain(|one| !Arc::ptr_eq(one, group));
    }

    /// Registers the id and its groups for their events on `channel`.
    fn register(self: &Arc<Self>, channel: &Channel) {
        let mut registrations = channel.registrations();
        registrations.insert(self.token(), Weak::clone(self.handle.state()));
        if let Some(rare) = self.rare.get() {
            for group in rare.groups().iter().filter(|group| !group.is_left()) {
                registrations.insert(group.token(), Arc::downgrade(self));
            }
        }
    }

    fn unregister(&self, channel: &Channel) {
        let mut registrations = channel.registrations();
        registrations.remove(self.token());
        // Under the lock under which a group is added.
        if let Some(rare) = self.rare.get() {
            for group in rare.groups().iter() {
                registrations.remove(group.token());
            }
        }
    }

    /// Removes the registrations on `channel`, the id's, and on those it was on before.
    #[cold]
    fn unregister_everywhere(&self, channel: &Channel) {
        self.unregister(channel);
        if let Some(rare) = self.rare.get() {
            for channel in rare.previous().iter().filter_map(Weak::upgrade) {
                self.unregister(&channel);
            }
        }
    }

    /// The kernel has refused to create the id.
    #[cold]
    pub(crate) fn abandon(&self) {
        self.unregister(&self.channel());
    }

    /// Begins a command; `None` if the owner has dropped the id.
    #[inline]
    pub(crate) fn enter(self: Arc<Self>) -> Option<InFlight> {
        self.in_flight.begin().then(|| InFlight::new(self))
    }

    /// Ends a command.
    #[inline]
    fn leave(&self) {
        if self.in_flight.end() {
            self.destroy();
        }
    }

    #[cold]
    fn destroy(&self) {
        self.channel().destroy(self.kernel_id());
    }

    /// Closes the id for its owner: no event is delivered and no command begins
    /// afterwards. Destroys the id, or leaves that to the last command in flight.
    pub(crate) fn close(&self) {
        let is_idle = self.in_flight.close();
        let channel = self.channel();
        channel.registrations().remove(self.token());
        // A group is added under the same lock: before this, or it finds the count closed.
        if self.rare.get().is_some() {
            self.unregister_everywhere(&channel);
        }
        channel.discard_local_events(self.token());
        if is_idle {
            channel.destroy(self.kernel_id());
        }
    }

    /// Queues a local event of this id on its channel.
    pub(crate) fn push_local_event(&self, event: rdmacm_abi::EventNumber, status: i32) {
        self.location.lock().channel.push_local_event(LocalEvent {
            token: self.token(),
            event,
            status,
        });
    }
}

impl fmt::Debug for IdState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CmId")
            .field("kernel_id", &self.kernel_id())
            .field("port_space", &self.handle.port_space())
            .field("qp_type", &self.handle.qp_type())
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}
