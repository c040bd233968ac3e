//! Commands in flight.

use std::ops::Deref;
use std::sync::Arc;

use rdmacm_abi::{Command, CommandNumber};

use super::{IdState, Location};
use crate::address_abi::AddressAbi;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::ucma::{Attachment, transact};

/// A command in flight: the kernel's id is not destroyed before it is dropped.
pub(crate) struct InFlight(Arc<IdState>);

impl InFlight {
    /// For a command that has entered the gate.
    pub(super) fn new(state: Arc<IdState>) -> Self {
        Self(state)
    }

    /// The state, for what outlives the command.
    pub(crate) fn state(&self) -> &Arc<IdState> {
        &self.0
    }

    /// Sends a kernel command that belongs to `operation`.
    pub(crate) fn send<C: Command>(
        &self,
        operation: Operation,
        request: &C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> Result<()> {
        let mut location = self.current_location();
        loop {
            let ucma = location.channel.ucma.as_ref();
            let error = match transact(ucma, request, response, attachment) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            // The kernel checks first that the id is on this file, and answers EINVAL
            // if not: the id may have migrated since the location was read.
            let current = self.current_location();
            let has_migrated = current.migrations != location.migrations;
            if error.raw_os_error() != Some(libc::EINVAL) || !has_migrated {
                return Err(Error::command(operation, C::NUMBER, &error));
            }
            location = current;
        }
    }

    fn current_location(&self) -> Location {
        self.location().clone()
    }

    /// Runs a command that may change the kernel's answers about the id, and drops
    /// the cached ones. A refused command may change them too: the kernel binds an
    /// id before it looks for a route or listens.
    pub(crate) fn invalidating<T>(&self, command: impl FnOnce() -> Result<T>) -> Result<T> {
        let outcome = command();
        self.cache().invalidate();
        outcome
    }

    /// Runs a command with the channel's address ABI, see [`SelectedAbi::run`].
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
        let support = &channel.command_support;
        support.run(channel.ucma.as_ref(), number, command)
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
        self.0.leave();
    }
}
