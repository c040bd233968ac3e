//! Resolving addresses and routes.

use std::time::Duration;

use rdmacm_abi::{NoResponse, ResolveAddr, ResolveIp, ResolveRoute};

use super::{IdHandle, ip_slot};
use crate::address::{CmAddr, to_storage};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Begins to resolve a destination to an RDMA address; ends with an
    /// [`AddrResolved`](crate::EventKind::AddrResolved) or
    /// [`AddrError`](crate::EventKind::AddrError) event. After an error the id may try
    /// again.
    ///
    /// The kernel chooses the source by its routes, unless one is given or the id is
    /// bound; a bound id ignores a given source. Both kinds of failure, of the call and
    /// by event, leave the id bound, so another source needs another id. It also needs one after a
    /// failure to bind the id to the source (an error of [`bind`](Self::bind)), which leaves the id
    /// unbound. The timeout is for the neighbour's answer, in
    /// milliseconds, rounded up; 0 suffices for a neighbour that the kernel knows already.
    /// Source: `rdma_resolve_addr(3)`, the kernel's `cma.c` and `addr.c`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a source of another family or a timeout over
    /// `i32::MAX` milliseconds (24 days). [`Error::Command`]: `ENETUNREACH` and the like
    /// if there is no route, those of [`bind`](Self::bind) for the source, `EINVAL` for
    /// an id that resolves or has resolved already.
    #[doc(alias = "rdma_resolve_addr")]
    pub fn resolve_addr(
        &self,
        source: Option<CmAddr>,
        destination: impl Into<CmAddr>,
        timeout: Duration,
    ) -> Result<()> {
        let destination = destination.into();
        let operation = || Operation::ResolveAddr {
            source,
            destination,
            timeout,
        };
        let timeout = milliseconds(timeout, operation)?;
        if source.is_some_and(|source| source.family() != destination.family()) {
            let reason = "the source's family is not the destination's";
            return Err(Error::invalid(operation(), reason));
        }
        let id = self.enter()?;
        id.note_address(&destination);
        id.invalidating(|| {
            id.with_address_abi_for(
                &destination,
                || {
                    let from = source.as_ref().map(to_storage);
                    let to = to_storage(&destination);
                    let request = ResolveAddr::new(id.kernel_id(), from, to, timeout);
                    id.send(operation, request, &mut NoResponse, Attachment::None)
                },
                || {
                    let from = source.map(|source| ip_slot(operation(), &source));
                    let to = ip_slot(operation(), &destination)?;
                    let request = ResolveIp::new(id.kernel_id(), from.transpose()?, to, timeout);
                    id.send(operation, request, &mut NoResponse, Attachment::None)
                },
            )
        })
    }

    /// Begins to resolve the route to the destination; ends with a
    /// [`RouteResolved`](crate::EventKind::RouteResolved) or
    /// [`RouteError`](crate::EventKind::RouteError) event.
    ///
    /// On InfiniBand this queries the subnet administrator; on RoCE and iWARP the event
    /// follows at once. The timeout is in milliseconds, rounded up.
    /// Source: `rdma_resolve_route(3)`, the kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a timeout of 0 or over `i32::MAX`
    /// milliseconds. [`Error::Command`]: `EINVAL` for an id without a resolved
    /// address, `ENODEV` for a loopback destination.
    #[doc(alias = "rdma_resolve_route")]
    pub fn resolve_route(&self, timeout: Duration) -> Result<()> {
        let operation = || Operation::ResolveRoute { timeout };
        if timeout.is_zero() {
            return Err(Error::invalid(
                operation(),
                "a timeout of 0 resolves nothing",
            ));
        }
        let timeout = milliseconds(timeout, operation)?;
        let id = self.enter()?;
        let request = ResolveRoute::new(id.kernel_id(), timeout);
        id.invalidating(|| id.send(operation, request, &mut NoResponse, Attachment::None))
    }
}

/// The kernel takes a u32, and its clock anything over this for infinity.
const MAX_MILLISECONDS: u32 = i32::MAX as u32;

fn milliseconds(timeout: Duration, operation: impl FnOnce() -> Operation) -> Result<u32> {
    let more = u64::from(timeout.subsec_nanos().div_ceil(1_000_000));
    let whole = timeout.as_secs().checked_mul(1000);
    whole
        .and_then(|whole| u32::try_from(whole.checked_add(more)?).ok())
        .filter(|milliseconds| *milliseconds <= MAX_MILLISECONDS)
        .ok_or_else(|| {
            Error::invalid(
                operation(),
                "the timeout is longer than the kernel can count",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_rounded_up_and_bounded() {
        let milliseconds = |timeout| milliseconds(timeout, || Operation::Listen);
        let micro = Duration::from_micros(1);
        assert_eq!(milliseconds(Duration::ZERO), Ok(0));
        assert_eq!(milliseconds(micro), Ok(1));
        assert_eq!(milliseconds(Duration::from_millis(999) + micro), Ok(1000));
        assert_eq!(milliseconds(Duration::from_secs(2)), Ok(2000));
        let longest = Duration::from_millis(0x7fff_ffff);
        assert_eq!(milliseconds(longest), Ok(0x7fff_ffff));
        assert!(milliseconds(longest + micro).is_err());
        assert!(milliseconds(Duration::MAX).is_err());
    }
}
