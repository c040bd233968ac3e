//! What an id is made of, and when it ends.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};

use rdmacm_abi::{Command, CommandNumber, Ece, PortSpace, QpType};

use super::query_cache::QueryCache;
use super::resolution::ResolutionSlot;
use crate::address_abi::AddressAbi;
use crate::channel::{Owner, Shared};
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::multicast::Membership;
use crate::operation::Operation;
use crate::queue_pair::DepthLimits;
use crate::token::Token;
use crate::ucma::{Attachment, transact};

/// No id has this number, and no command about it does anything.
const UNBORN: u32 = u32::MAX;

/// Where an id is.
#[derive(Clone)]
pub(super) struct Location {
    pub(super) channel: Arc<Shared>,
    /// Counts the moves: an id may have been elsewhere and come back.
    moves: u64,
}

/// What a peer asks for with its request.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) depths: DepthLimits,
    pub(crate) ece: Ece,
}

/// An id's state, shared by its owner, its handles and the commands in flight.
pub(crate) struct IdState {
    /// Changes when the id migrates.
    location: RwLock<Location>,
    /// Where the id was before: an event may be in the hands of a reader there.
    former: Mutex<Vec<Weak<Shared>>>,
    /// Those of them through which requests came that may still be unread; their
    /// files stay open for the ids these bring.
    sources: Mutex<Vec<Arc<Shared>>>,
    listens: AtomicBool,
    token: Token,
    kernel_id: AtomicU32,
    port_space: PortSpace,
    qp_type: QpType,
    /// What the peer asked for with the request that brought this id.
    asked: Option<Asked>,
    /// How often it has asked a peer with nobody having read the answer yet.
    waiting: AtomicU32,
    gate: Gate,
    pub(super) kept: Mutex<QueryCache>,
    groups: Mutex<Vec<Arc<Membership>>>,
    pub(super) slot: Mutex<ResolutionSlot>,
}

impl IdState {
    /// A state whose events already find it, for an id that is about to exist.
    pub(crate) fn unborn(
        channel: &Arc<Shared>,
        port_space: PortSpace,
        qp_type: QpType,
        asked: Option<Asked>,
    ) -> Arc<Self> {
        let state = Arc::new(Self {
            location: RwLock::new(Location {
                channel: Arc::clone(channel),
                moves: 0,
            }),
            former: Mutex::default(),
            sources: Mutex::default(),
            listens: AtomicBool::new(false),
            token: Token::new(),
            kernel_id: AtomicU32::new(UNBORN),
            port_space,
            qp_type,
            asked,
            waiting: AtomicU32::new(0),
            gate: Gate::default(),
            kept: Mutex::default(),
            groups: Mutex::default(),
            slot: Mutex::default(),
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

    pub(crate) fn asked(&self) -> Option<DepthLimits> {
        self.asked.map(|asked| asked.depths)
    }

    /// The options that the request brought; zeros where there was none.
    pub(super) fn asked_ece(&self) -> Ece {
        self.asked.map(|asked| asked.ece).unwrap_or_default()
    }

    /// Whether it has asked a peer and nobody has read the answer yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) != 0
    }

    /// It is about to ask.
    pub(super) fn asks(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    /// It was not allowed to. (An answer may have come to another question.)
    pub(super) fn did_not_ask(&self) {
        let less = |asked: u32| asked.checked_sub(1);
        let _ = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// The answer has been read.
    pub(crate) fn is_answered(&self) {
        self.waiting.store(0, Ordering::Release);
    }

    /// From now on requests may come.
    pub(super) fn set_listening(&self) {
        self.listens.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.gate.is_closed()
    }

    // The locked values are whole between any two statements, so a panic
    // elsewhere while one was locked leaves nothing broken.

    pub(crate) fn channel(&self) -> Arc<Shared> {
        self.location().channel
    }

    fn location(&self) -> Location {
        self.place().clone()
    }

    /// Where the id is, and stays while this is held.
    pub(super) fn place(&self) -> RwLockReadGuard<'_, Location> {
        let place = self.location.read();
        place.unwrap_or_else(PoisonError::into_inner)
    }

    fn former(&self) -> MutexGuard<'_, Vec<Weak<Shared>>> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sources(&self) -> MutexGuard<'_, Vec<Arc<Shared>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the id was on `channel` before.
    pub(super) fn knows(&self, channel: &Arc<Shared>) -> bool {
        let channel = Arc::downgrade(channel);
        self.former().iter().any(|one| one.ptr_eq(&channel))
    }

    /// The id leaves `channel`.
    pub(super) fn leave_behind(&self, channel: &Arc<Shared>) {
        if !self.knows(channel) {
            self.former().push(Arc::downgrade(channel));
        }
        let mut sources = self.sources();
        let listens = self.listens.load(Ordering::Acquire);
        if listens && !sources.iter().any(|one| Arc::ptr_eq(one, channel)) {
            sources.push(Arc::clone(channel));
        }
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Vec<Arc<Membership>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the id on another channel if `migrate` succeeds. Commands that begin
    /// meanwhile wait to learn where the id is.
    pub(super) fn relocate(
        &self,
        to: &Arc<Shared>,
        migrate: impl FnOnce(&Arc<Shared>) -> Result<()>,
    ) -> Result<()> {
        let mut place = self
            .location
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&place.channel, to) {
            return Ok(());
        }
        // Before, so that a request which is read at once finds where it came from.
        self.leave_behind(&place.channel);
        migrate(&place.channel)?;
        place.channel = Arc::clone(to);
        place.moves = place.moves.wrapping_add(1);
        Ok(())
    }

    /// Events of a group find it from now on, wherever the id goes.
    ///
    /// # Errors
    /// [`Error::IdGone`] where the owner has let go: it has taken back what was
    /// registered by then, and nobody would take back more.
    pub(super) fn add_group(self: &Arc<Self>, group: &Arc<Membership>) -> Result<()> {
        let place = self.place();
        let mut owners = place.channel.owners();
        // Looked at under the lock, which `close` takes after it has closed the gate.
        if !self.is_open() {
            return Err(Error::IdGone);
        }
        owners.insert(group.token(), Owner::Group(Arc::downgrade(self)));
        self.groups().push(Arc::clone(group));
        Ok(())
    }

    /// Events of a group find nobody from now on.
    pub(crate) fn remove_group(&self, group: &Arc<Membership>) {
        // Held, so that the id does not take the group along meanwhile.
        let place = self.place();
        self.groups().retain(|one| !Arc::ptr_eq(one, group));
        place.channel.owners().remove(&group.token());
        for channel in self.former().iter().filter_map(Weak::upgrade) {
            channel.owners().remove(&group.token());
        }
    }

    /// Events on `channel` find the id and its groups from now on.
    pub(super) fn register(self: &Arc<Self>, channel: &Shared) {
        let mut owners = channel.owners();
        owners.insert(self.token, Owner::Id(Arc::downgrade(self)));
        for group in self.groups().iter() {
            owners.insert(group.token(), Owner::Group(Arc::downgrade(self)));
        }
    }

    /// Events on `channel` find them no more.
    pub(super) fn unregister(&self, channel: &Shared) {
        let mut owners = channel.owners();
        owners.remove(&self.token);
        for group in self.groups().iter() {
            owners.remove(&group.token());
        }
    }

    /// Takes back the registration of an id that did not come to be.
    pub(crate) fn withdraw(&self) {
        self.unregister(&self.channel());
        for channel in self.former().iter().filter_map(Weak::upgrade) {
            self.unregister(&channel);
        }
    }

    pub(crate) fn enter(self: Arc<Self>) -> Option<InFlight> {
        self.gate.enter().then(|| InFlight(self))
    }

    /// The owner lets go: no event is delivered and no command begun from now
    /// on, and the id is destroyed at once or by the last command out.
    pub(crate) fn close(&self) {
        let is_idle = self.gate.close();
        self.withdraw();
        self.channel().discard(self.token);
        if is_idle {
            self.destroy();
        }
    }

    fn destroy(&self) {
        self.channel().destroy(self.kernel_id());
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

/// A command between its entry and its return.
pub(crate) struct InFlight(Arc<IdState>);

impl InFlight {
    /// The state, for what outlives the command.
    pub(crate) fn state(&self) -> &Arc<IdState> {
        &self.0
    }

    /// Sends a command that belongs to `operation`.
    pub(crate) fn send<C: Command>(
        &self,
        operation: Operation,
        request: &C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> Result<()> {
        let mut place = self.location();
        loop {
            let device = place.channel.ucma.as_ref();
            let error = match transact(device, request, response, attachment) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            // EINVAL before anything else where the id is on another file: it
            // may have moved since the channel was looked up.
            let now = self.location();
            if error.raw_os_error() != Some(libc::EINVAL) || now.moves == place.moves {
                return Err(Error::command(operation, C::NUMBER, &error));
            }
            place = now;
        }
    }

    /// Runs a command in the channel's dialect, see [`SelectedAbi::run`].
    ///
    /// [`SelectedAbi::run`]: crate::address_abi::SelectedAbi::run
    pub(crate) fn with_address_abi<T>(
        &self,
        command: impl FnMut(AddressAbi) -> Result<T>,
    ) -> Result<T> {
        let channel = self.channel();
        channel.address_abi.run(channel.ucma.as_ref(), command)
    }

    /// Runs a command that older kernels lack, see [`CommandSupport::run`].
    ///
    /// [`CommandSupport::run`]: crate::command_support::CommandSupport::run
    pub(crate) fn if_supported<T>(
        &self,
        number: CommandNumber,
        command: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let channel = self.channel();
        channel
            .command_support
            .run(channel.ucma.as_ref(), number, command)
    }
}

impl Deref for InFlight {
    type Target = IdState;

    fn deref(&self) -> &IdState {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.gate.leave() {
            self.0.destroy();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::EventChannel;
    use crate::ucma::testing::AcceptAll;

    fn channel() -> EventChannel {
        let options = EventChannel::options().ucma(Arc::new(AcceptAll::new()));
        options.open().unwrap()
    }

    fn group() -> Arc<Membership> {
        Membership::new(([239, 0, 0, 1], 0).into())
    }

    #[test]
    fn a_group_that_comes_after_its_owner_has_gone_leaves_nothing() {
        let channel = channel();
        let id = channel.create_id(PortSpace::UDP).unwrap();
        let in_flight = id.enter().unwrap();
        drop(id);
        assert_eq!(in_flight.state().add_group(&group()), Err(Error::IdGone));
        assert!(channel.shared().owners().is_empty());
    }

    #[test]
    fn whoever_is_faster_no_group_outlives_its_id() {
        let channel = channel();
        for _ in 0..200 {
            let id = channel.create_id(PortSpace::UDP).unwrap();
            let in_flight = id.enter().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || in_flight.state().add_group(&group()));
                scope.spawn(move || drop(id));
            });
            assert!(channel.shared().owners().is_empty());
        }
    }
}
