//! The kernel's two sets of address commands.

use std::sync::atomic::{AtomicU8, Ordering};

use rdmacm_abi::{Bind, NoResponse};

use crate::address::{CmAddr, Family, to_storage};
use crate::error::Error;
use crate::ucma::{Attachment, NO_ID, UcmaFile, transact};

/// One of the kernel's two sets of address commands.
///
/// If none was chosen, a channel binds and resolves IP addresses with the second set, whose
/// commands are shorter. For everything else it uses the first set, if the kernel has it.
/// [`IdHandle::route`](crate::IdHandle::route) always begins with `QUERY_ROUTE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressAbi {
    /// `BIND`, `RESOLVE_ADDR`, `QUERY`: addresses of any family, in slots of
    /// 128 bytes with a length. Needs Linux 3.12 or newer.
    AnyFamily,
    /// `BIND_IP`, `RESOLVE_IP`, `QUERY_ROUTE`: IPv4 and IPv6 only. In every kernel;
    /// one query returns addresses, GIDs and path records together.
    IpOnly,
}

const PRESUMED: u8 = 0;
const ANY_FAMILY: u8 = 1;
const IP_ONLY: u8 = 2;
/// By the caller, also for IP addresses.
const ANY_FAMILY_CHOSEN: u8 = 3;

/// The address ABI of a channel: chosen by the caller, or presumed to be the newer
/// one until the kernel refuses a command and a probe decides.
#[derive(Debug)]
pub(crate) struct SelectedAbi(AtomicU8);

impl SelectedAbi {
    pub(crate) fn new(chosen: Option<AddressAbi>) -> Self {
        Self(AtomicU8::new(match chosen {
            None => PRESUMED,
            Some(AddressAbi::AnyFamily) => ANY_FAMILY_CHOSEN,
            Some(AddressAbi::IpOnly) => IP_ONLY,
        }))
    }

    pub(crate) fn current(&self) -> AddressAbi {
        match self.0.load(Ordering::Relaxed) {
            IP_ONLY => AddressAbi::IpOnly,
            _ => AddressAbi::AnyFamily,
        }
    }

    /// Whether binding and resolving an IP address is the second set's.
    pub(crate) fn takes_ip_commands(&self) -> bool {
        self.0.load(Ordering::Relaxed) != ANY_FAMILY_CHOSEN
    }

    /// Whether a command for any address family failed because the kernel does not have
    /// it. The kernel answers `EINVAL` to command numbers beyond its table, so after an
    /// `EINVAL` this probes, once for each channel, whether the kernel has the newer
    /// commands.
    pub(crate) fn is_missing(&self, ucma: &dyn UcmaFile, error: &Error) -> bool {
        error.raw_os_error() == Some(libc::EINVAL) && self.probed(ucma) == AddressAbi::IpOnly
    }

    /// The ABI that a probe finds, by this or another thread.
    fn probed(&self, ucma: &dyn UcmaFile) -> AddressAbi {
        if self.0.load(Ordering::Relaxed) != PRESUMED {
            return self.current();
        }
        let found = if has_bind(ucma) { ANY_FAMILY } else { IP_ONLY };
        self.0.store(found, Ordering::Relaxed);
        self.current()
    }
}

/// A command about an id that cannot exist fails with `ENOENT` if the kernel has the
/// command, and with `EINVAL` if its number is beyond the table.
fn has_bind(ucma: &dyn UcmaFile) -> bool {
    let probe = Bind::new(NO_ID, to_storage(&CmAddr::any(Family::V4)));
    match transact(ucma, &probe, &mut NoResponse, Attachment::None) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() != Some(libc::EINVAL),
    }
}
