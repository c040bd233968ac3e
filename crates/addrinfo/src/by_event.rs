//! Resolving for an id, the end told by an event.

use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use rdmacm_core::{Deadline, Family, IbService, IdHandle, PendingResolution, PortSpace, QpType};

use crate::addr_info::AddrInfo;
use crate::ask;
use crate::candidate;
use crate::directory::Directory;
use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::route::{Route, Via};
use crate::services;

/// Resolving names for an id, whose channel tells when it is done: for event
/// loops, which must not wait for name servers.
pub trait ResolveAddrInfo {
    /// Begins to resolve a node and a service, see [`resolve`](crate::resolve),
    /// and returns at once. An
    /// [`AddrInfoResolved`](rdmacm_core::EventKind::AddrInfoResolved) or
    /// [`AddrInfoError`](rdmacm_core::EventKind::AddrInfoError) event of the id
    /// reports the end, on any kernel, at the latest at the deadline of the hints,
    /// and [`query_addrinfo`](Self::query_addrinfo) has the result. The status of
    /// a failure is a negative error number: `ENOENT` for a name that has no
    /// address, `ETIMEDOUT` where the name server did not answer.
    ///
    /// Name server and kernel are asked on a thread of the directory's, of which
    /// there are at most 64 at a time; the id itself is only told. Destroying it
    /// gives the resolution up: nobody hears of it any more.
    ///
    /// With [`AddrInfoFlags::SA`] it is the kernel that asks the subnet
    /// administrator of the InfiniBand port the id is bound to, see
    /// [`resolve_ib_service`](IdHandle::resolve_ib_service), for two seconds at
    /// most; the directory has no part in it, and nobody asks whether RDMA reaches what
    /// is found: its [`Route`] names the port and has no path records.
    /// Source: `rdma_resolve_addrinfo(3)`.
    ///
    /// # Errors
    /// [`rdmacm_core::Error::Busy`] while the id resolves a name or a service, until
    /// the event of the end is read, or has resolved one and nobody has asked for it;
    /// those of
    /// [`resolve_ib_service`](IdHandle::resolve_ib_service) for a service;
    /// [`Error::TooManyLookups`] and [`Error::NoThread`];
    /// [`Error::NothingToResolve`], [`Error::Hints`] and their like for what cannot
    /// be asked. Nothing has begun then.
    #[doc(alias = "rdma_resolve_addrinfo")]
    fn resolve_addrinfo<'name>(
        &self,
        directory: &Directory,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<()>;

    /// Hands over what was resolved, once: the list, or why there is none.
    /// Source: `rdma_query_addrinfo(3)`.
    ///
    /// # Errors
    /// [`Error::NothingResolved`] before the event of the end is read, and where the
    /// result was handed over already; otherwise the failure of the resolution,
    /// [`Error::Administrator`] for a service.
    #[doc(alias = "rdma_query_addrinfo")]
    fn query_addrinfo(&self) -> Result<Vec<AddrInfo>>;
}

impl ResolveAddrInfo for IdHandle {
    fn resolve_addrinfo<'name>(
        &self,
        directory: &Directory,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<()> {
        let node = node.into().map(str::to_owned);
        let service = service.into().map(str::to_owned);
        candidate::check(node.as_deref(), service.as_deref(), hints)?;
        if hints.asks_administrator() {
            let service = services::wanted(node.as_deref(), service.as_deref())?;
            return ServiceAsked::begin(self, service, hints);
        }
        let place = directory.tasks.take().ok_or(Error::TooManyLookups)?;
        let pending = self.begin_resolution()?;
        // Counted from now, not from when the thread begins.
        let until = hints.deadline.until(Instant::now());
        let deadline = until.map_or(Deadline::Never, Deadline::At);
        let hints = hints.clone().deadline(deadline);
        let directory = directory.clone();
        // Handed over once there is a thread, so that none is lost.
        let (hand, handed) = sync_channel::<PendingResolution>(1);
        let work = move || {
            let Ok(pending) = handed.recv() else { return };
            let found = directory.resolve(node.as_deref(), service.as_deref(), &hints);
            // Free before anybody hears of it.
            drop(place);
            let status = found.as_ref().err().map_or(0, |error| -errno(error));
            pending.finish(status, found);
        };
        let thread = thread::Builder::new().name("rdmacm-resolve".to_owned());
        match thread.spawn(work) {
            Ok(_) => {
                // The thread waits for it.
                let _ = hand.send(pending);
                Ok(())
            }
            Err(error) => {
                pending.cancel();
                Err(Error::NoThread(error.kind()))
            }
        }
    }

    fn query_addrinfo(&self) -> Result<Vec<AddrInfo>> {
        if self.is_resolving() {
            return Err(Error::NothingResolved);
        }
        if let Some(asked) = self.take_result::<ServiceAsked>() {
            return asked.found(self);
        }
        let brought: Option<Result<Vec<AddrInfo>>> = self.take_result();
        brought.unwrap_or(Err(Error::NothingResolved))
    }
}

/// A service that the kernel resolves for the id itself, and keeps the records of.
struct ServiceAsked {
    flags: AddrInfoFlags,
    qp_type: QpType,
}

impl ServiceAsked {
    fn begin(id: &IdHandle, service: IbService, hints: &Hints) -> Result<()> {
        let kind = Kind::new(Some(PortSpace::IB), hints.qp_type)?;
        // The kernel's event tells of the end.
        id.begin_resolution()?.hand_to_service(Self {
            flags: hints.flags,
            qp_type: kind.qp_type,
        });
        let begun = id.resolve_ib_service(service);
        if begun.is_err() {
            drop(id.take_result::<Self>());
        }
        Ok(begun?)
    }

    /// The records as addresses, from where the id is bound; nobody has asked for
    /// routes there.
    fn found(&self, id: &IdHandle) -> Result<Vec<AddrInfo>> {
        if let Some(failure) = id.resolution_failure() {
            return Err(Error::Administrator(failure));
        }
        let records = id.ib_service_records()?;
        let source = id.addresses()?.source;
        let via = Self::via(id)?;
        let info = |record| {
            let destination = services::destination(record);
            let via = via.clone().map(|via| Via {
                destination_gid: Some(destination.gid),
                ..via
            });
            AddrInfo {
                flags: self.flags,
                family: Family::Ib,
                qp_type: self.qp_type,
                port_space: PortSpace::IB,
                source,
                destination: Some(destination.into()),
                canonical_name: None,
                route: Vec::new(),
                connect_data: Vec::new(),
                reach: Ok(Route {
                    via,
                    path_records: Vec::new(),
                }),
            }
        };
        Ok(records.iter().map(info).collect())
    }

    /// The port the id is bound to, whose administrator was asked.
    fn via(id: &IdHandle) -> Result<Option<Via>> {
        let device = id.rdma_device()?;
        let named = |via: Via| match device {
            Some(device) => Via {
                device_name: Some(device.name),
                transport: device.transport,
                ..via
            },
            None => via,
        };
        Ok(ask::via(id)?.map(named))
    }
}

/// The error number an event tells of a failure, positive.
fn errno(error: &Error) -> i32 {
    match error {
        Error::Rdma(error) => error.raw_os_error().unwrap_or(libc::EIO),
        Error::LookupDeadline => libc::ETIMEDOUT,
        Error::Interfaces(errno) | Error::Name(NameError::System(errno)) if *errno > 0 => *errno,
        Error::Name(error) => name_errno(*error),
        Error::TooManyLookups | Error::NoThread(_) => libc::EAGAIN,
        Error::LookupDied => libc::EIO,
        _ => libc::EINVAL,
    }
}

fn name_errno(error: NameError) -> i32 {
    use NameError::{AddressFamily, Again, Memory, NoData, NoName, Service};
    use NameError::{BadFlags, Family, SocketType};
    match error {
        NoName | NoData | AddressFamily | Service => libc::ENOENT,
        Again => libc::EAGAIN,
        Memory => libc::ENOMEM,
        BadFlags | Family | SocketType => libc::EINVAL,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_error_number() {
        for (error, number) in [
            (rdmacm_core::Error::Wait { errno: 9 }.into(), 9),
            (rdmacm_core::Error::Busy.into(), libc::EIO),
            (Error::LookupDeadline, libc::ETIMEDOUT),
            (Error::Interfaces(libc::ENOBUFS), libc::ENOBUFS),
            (Error::Interfaces(0), libc::EINVAL),
            (Error::TooManyLookups, libc::EAGAIN),
            (Error::LookupDied, libc::EIO),
            (Error::NothingToResolve, libc::EINVAL),
            (NameError::NoName.into(), libc::ENOENT),
            (NameError::NoData.into(), libc::ENOENT),
            (NameError::AddressFamily.into(), libc::ENOENT),
            (NameError::Service.into(), libc::ENOENT),
            (NameError::Again.into(), libc::EAGAIN),
            (NameError::Memory.into(), libc::ENOMEM),
            (NameError::BadFlags.into(), libc::EINVAL),
            (NameError::Family.into(), libc::EINVAL),
            (NameError::SocketType.into(), libc::EINVAL),
            (NameError::System(libc::ENFILE).into(), libc::ENFILE),
            (NameError::System(0).into(), libc::EIO),
            (NameError::Fail.into(), libc::EIO),
        ] {
            assert_eq!(errno(&error), number, "{error:?}");
        }
    }
}
