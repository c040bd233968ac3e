//! Which of the kernel's two sets of address commands a channel uses.

use std::sync::atomic::{AtomicU8, Ordering};

use rdmacm_abi::{Bind, NoResponse};

use crate::address::{CmAddr, Family, to_storage};
use crate::error::Result;
use crate::ucma::{Attachment, UcmaFile, transact};

/// An id no kernel ever hands out, so that a command about it does nothing.
pub(crate) const NO_ID: u32 = u32::MAX;

/// One of the kernel's two sets of address commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressAbi {
    /// `BIND`, `RESOLVE_ADDR`, `QUERY`: addresses of any family, in slots of
    /// 128 bytes with a length. In every kernel since 3.12.
    AnyFamily,
    /// `BIND_IP`, `RESOLVE_IP`, `QUERY_ROUTE`: IPv4 and IPv6 only. In every
    /// kernel; one question answers addresses, GIDs and path records together.
    IpOnly,
}

const PRESUMED: u8 = 0;
const ANY_FAMILY: u8 = 1;
const IP_ONLY: u8 = 2;

/// A channel's dialect: chosen by the caller, or presumed to be the newer one
/// until the kernel's answer makes that doubtful and a probe settles it.
#[derive(Debug)]
pub(crate) struct SelectedAbi(AtomicU8);

impl SelectedAbi {
    pub(crate) fn new(asked: Option<AddressAbi>) -> Self {
        Self(AtomicU8::new(match asked {
            None => PRESUMED,
            Some(AddressAbi::AnyFamily) => ANY_FAMILY,
            Some(AddressAbi::IpOnly) => IP_ONLY,
        }))
    }

    pub(crate) fn current(&self) -> AddressAbi {
        match self.0.load(Ordering::Relaxed) {
            IP_ONLY => AddressAbi::IpOnly,
            _ => AddressAbi::AnyFamily,
        }
    }

    /// Runs `command` in the channel's dialect. An `EINVAL` may mean that the
    /// kernel does not know the newer commands (its answer to every number
    /// beyond its table): then, once in a channel's life, the kernel is asked,
    /// and the command repeated if it has to be said the older way.
    pub(crate) fn run<T>(
        &self,
        ucma: &dyn UcmaFile,
        mut command: impl FnMut(AddressAbi) -> Result<T>,
    ) -> Result<T> {
        let used = self.current();
        match command(used) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                match self.settled(ucma) {
                    // The kernel's last word.
                    settled if settled == used => Err(error),
                    settled => command(settled),
                }
            }
            answer => answer,
        }
    }

    /// The dialect for good, which another thread may have found out meanwhile.
    fn settled(&self, ucma: &dyn UcmaFile) -> AddressAbi {
        if self.0.load(Ordering::Relaxed) != PRESUMED {
            return self.current();
        }
        let settled = if knows_bind(ucma) {
            ANY_FAMILY
        } else {
            IP_ONLY
        };
        self.0.store(settled, Ordering::Relaxed);
        self.current()
    }
}

/// A command about an id that cannot exist answers `ENOENT` where the kernel
/// knows the command and `EINVAL` where the number is beyond its table.
fn knows_bind(ucma: &dyn UcmaFile) -> bool {
    let probe = Bind::new(NO_ID, to_storage(&CmAddr::any(Family::V4)));
    match transact(ucma, &probe, &mut NoResponse, Attachment::None) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() != Some(libc::EINVAL),
    }
}
