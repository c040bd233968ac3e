//! Commands in flight.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_abi::{Command, CommandNumber};

use super::{IdState, Location};
use crate::address::CmAddr;
use crate::address_abi::AddressAbi;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::ucma::{Attachment, Call, Frame};

/// A command in flight: the kernel's id is not destroyed before it is dropped.
pub(crate) struct InFlight {
    state: Arc<IdState>,
    /// Where the id was when the command began.
    location: Location,
}

impl InFlight {
    /// For a command that is counted.
    #[inline]
    pub(super) fn new(state: Arc<IdState>) -> Self {
        let location = state.location.get();
        Self { state, location }
    }

    /// The state, for what outlives the command.
    pub(crate) fn state(&self) -> &Arc<IdState> {
        &self.state
    }

    /// Sends a kernel command that belongs to `operation`.
    #[inline]
    pub(crate) fn send<C: Command>(
        &self,
        operation: impl FnOnce() -> Operation,
        request: C,
        response: &mut C::Response,
        attachment: Attachment<'_>,
    ) -> Result<()> {
        let mut frame = Frame::new(request);
        let mut call = Call::new(&mut frame, response, attachment);
        match self.location.channel.ucma.execute(&mut call) {
            Ok(()) => Ok(()),
            Err(error) => match self.execute_elsewhere(&mut call, error) {
                Ok(()) => Ok(()),
                Err(error) => Err(Error::command(operation(), C::NUMBER, &error)),
            },
        }
    }

    /// Executes a command once more that was refused, if the id has migrated meanwhile:
    /// the kernel checks first that the id is on the file, and answers `EINVAL` if not.
    #[cold]
    fn execute_elsewhere(&self, call: &mut Call<'_>, mut error: io::Error) -> io::Result<()> {
        let mut used = self.location.migrations;
        while error.raw_os_error() == Some(libc::EINVAL) {
            let location = self.state.location.lock().clone();
            if location.migrations == used {
                break;
            }
            used = location.migrations;
            match location.channel.ucma.execute(call) {
                Ok(()) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(error)
    }

    /// Runs a command that may change the kernel's answers about the id, and drops
    /// the cached ones. A refused command may change them too: the kernel binds an
    /// id before it looks for a route or listens.
    #[inline]
    pub(crate) fn invalidating<T>(&self, command: impl FnOnce() -> Result<T>) -> Result<T> {
        let outcome = command();
        self.cache().invalidate();
        outcome
    }

    /// Runs one of two commands, by the channel's address ABI: the one for any address
    /// family or, on a kernel that does not have that, the one for IP.
    #[inline]
    pub(crate) fn with_address_abi<T>(
        &self,
        any_family: impl FnOnce() -> Result<T>,
        ip_only: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.address_abi() == AddressAbi::AnyFamily {
            match any_family() {
                Err(error) if self.lacks_any_family(&error) => {}
                outcome => return outcome,
            }
        }
        with_older_abi(ip_only)
    }

    /// As [`with_address_abi`](Self::with_address_abi), for a command that both sets have for
    /// this address.
    #[inline]
    pub(crate) fn with_address_abi_for<T>(
        &self,
        address: &CmAddr,
        any_family: impl FnOnce() -> Result<T>,
        ip_only: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let is_ip = !matches!(address, CmAddr::Ib(_));
        if is_ip && self.location.channel.address_abi.takes_ip_commands() {
            return ip_only();
        }
        self.with_address_abi(any_family, ip_only)
    }

    /// The channel's address ABI.
    #[inline]
    pub(crate) fn address_abi(&self) -> AddressAbi {
        self.location.channel.address_abi.current()
    }

    #[cold]
    fn lacks_any_family(&self, error: &Error) -> bool {
        let channel = self.channel();
        channel.address_abi.is_missing(&*channel.ucma, error)
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
        support.run(&*channel.ucma, number, command)
    }
}

#[cold]
fn with_older_abi<T>(command: impl FnOnce() -> Result<T>) -> Result<T> {
    command()
}

impl Deref for InFlight {
    type Target = IdState;

    fn deref(&self) -> &IdState {
        &self.state
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.state.leave();
    }
}
