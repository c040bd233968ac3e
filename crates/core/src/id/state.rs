//! What an id is made of, and when it ends.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rdmacm_abi::{Command, PortSpace, QpType};

use super::kept::Kept;
use crate::channel::Shared;
use crate::device::{Attachment, transact};
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::operation::Operation;
use crate::token::Token;

/// No id has this number, and no command about it does anything.
const UNBORN: u32 = u32::MAX;

/// An id's state, shared by its owner, its handles and the commands in flight.
pub(crate) struct IdState {
    channel: Arc<Shared>,
    token: Token,
    kernel_id: AtomicU32,
    port_space: PortSpace,
    qp_type: QpType,
    gate: Gate,
    pub(super) kept: Mutex<Kept>,
}

impl IdState {
    /// A state whose events already find it, for an id that is about to exist.
    pub(crate) fn unborn(
        channel: &Arc<Shared>,
        port_space: PortSpace,
        qp_type: QpType,
    ) -> Arc<Self> {
        let state = Arc::new(Self {
            channel: Arc::clone(channel),
            token: Token::new(),
            kernel_id: AtomicU32::new(UNBORN),
            port_space,
            qp_type,
            gate: Gate::default(),
            kept: Mutex::default(),
        });
        let weak = Arc::downgrade(&state);
        channel.owners().insert(state.token, weak);
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

    pub(crate) fn is_open(&self) -> bool {
        !self.gate.is_closed()
    }

    /// Takes back the registration of an id that did not come to be.
    pub(crate) fn withdraw(&self) {
        self.channel.owners().remove(&self.token);
    }

    pub(crate) fn enter(self: Arc<Self>) -> Option<InFlight> {
        self.gate.enter().then(|| InFlight(self))
    }

    /// The owner lets go: no event is delivered and no command begun from now
    /// on, and the id is destroyed at once or by the last command out.
    pub(crate) fn close(&self) {
        self.withdraw();
        if self.gate.close() {
            self.channel.destroy(self.kernel_id());
        }
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
    /// Sends a command that belongs to `operation`.
    pub(crate) fn send<C: Command>(
        &self,
        operation: Operation,
        request: &C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> Result<()> {
        transact(self.channel.device.as_ref(), request, response, attachment)
            .map_err(|error| Error::command(operation, C::NUMBER, &error))
    }

    /// Runs a command in the channel's dialect, see [`Choice::run`].
    ///
    /// [`Choice::run`]: crate::dialect::Choice::run
    pub(crate) fn in_dialect<T>(&self, command: impl FnMut(Dialect) -> Result<T>) -> Result<T> {
        self.channel
            .dialect
            .run(self.channel.device.as_ref(), command)
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
            self.0.channel.destroy(self.0.kernel_id());
        }
    }
}
