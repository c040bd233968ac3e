//! A command of the kernel, of either device.

use rdmacm_core::CommandNumber;

/// A command of the kernel: the number says which device it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelCommand {
    /// One of the connection manager.
    ConnectionManager(CommandNumber),
    /// One of a device's verbs.
    Verbs(rdmacm_verbs::CommandNumber),
}

impl From<CommandNumber> for KernelCommand {
    fn from(number: CommandNumber) -> Self {
        Self::ConnectionManager(number)
    }
}

impl From<rdmacm_verbs::CommandNumber> for KernelCommand {
    fn from(number: rdmacm_verbs::CommandNumber) -> Self {
        Self::Verbs(number)
    }
}
