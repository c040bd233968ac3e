//! Resolving for an id, with an event at the end.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use rdmacm_core::{
    Addresses, Deadline, Family, IbService, IbServiceResolution, IdHandle, PendingResolution,
    PortSpace, QpType,
};
use scopeguard::ScopeGuard;

use crate::addr_info::AddrInfo;
use crate::addr_info_resolver::AddrInfoResolver;
use crate::candidate;
use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::route::{DevicePort, Route};
use crate::services;

/// Resolves names for an id, whose channel reports the end with an event: for event
/// loops, which must not block on name servers.
pub trait ResolveAddrInfo {
    /// Starts to resolve a node and a service, see [`resolve`](crate::resolve), and
    /// returns at once. An
    /// [`AddrInfoResolved`](rdmacm_core::EventKind::AddrInfoResolved) or
    /// [`AddrInfoError`](rdmacm_core::EventKind::AddrInfoError) event of the id
    /// reports the end, on any kernel, at the latest at the deadline of the hints,
    /// and then the [`AddrInfoResolution`] has the result. The status of a failure is a
    /// negative error number: `ENOENT` for a name that has no address, `EAGAIN` if the system's
    /// name resolver has given up waiting for a name server or no thread could be started for the
    /// lookup, `ETIMEDOUT` if the deadline passed before, also if the lookup waited for others,
    /// `ENODEV` if there is no connection manager to open.
    ///
    /// The resolution runs on a thread of the [`AddrInfoResolver`], of which there are at
    /// most 64 at a time. Destroying the id abandons the resolution, but does not stop its thread,
    /// which is one of the 64 until it ends, at the latest at the deadline.
    ///
    /// With [`AddrInfoFlags::SA`] the kernel queries the subnet administrator of the
    /// InfiniBand port that the id is bound to, see
    /// [`resolve_ib_service`](IdHandle::resolve_ib_service), for at most two seconds,
    /// without the [`AddrInfoResolver`]. Routes to the result are not resolved: its [`Route`] names
    /// the port and has no path records. If the device is removed meanwhile, only a
    /// [`DeviceRemoval`](rdmacm_core::EventKind::DeviceRemoval) event of the id arrives, and
    /// there is no result.
    /// Source: `rdma_resolve_addrinfo(3)`.
    ///
    /// # Errors
    /// [`rdmacm_core::Error::Busy`] while the id resolves a name or a service, until its
    /// event is read; those of
    /// [`resolve_ib_service`](IdHandle::resolve_ib_service) for a service;
    /// [`Error::TooManyResolutions`] and [`Error::NoThread`];
    /// [`Error::NothingToResolve`], [`Error::Hints`] and the like for invalid arguments.
    /// In all these cases nothing has started.
    #[doc(alias = "rdma_resolve_addrinfo")]
    fn resolve_addrinfo<'name>(
        &self,
        addr_info_resolver: &AddrInfoResolver,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<AddrInfoResolution>;
}

/// A resolution that an id has begun, see [`ResolveAddrInfo::resolve_addrinfo`].
///
/// Dropping it abandons the result. The event comes all the same.
#[derive(Debug)]
#[must_use = "it has the result"]
pub struct AddrInfoResolution(Resolution);

/// A result that a thread of the [`AddrInfoResolver`] leaves for the caller.
type SharedResult = Arc<Mutex<Option<Result<Vec<AddrInfo>>>>>;

#[derive(Debug)]
enum Resolution {
    Names(SharedResult),
    Service(ServiceResolution),
    Taken,
}

impl AddrInfoResolution {
    /// Takes the result, once: the list, or the error.
    /// Source: `rdma_query_addrinfo(3)`.
    ///
    /// # Errors
    /// [`Error::NothingResolved`] before the resolution has ended and after the result was
    /// taken; otherwise the error of the resolution. For a service that is [`Error::Administrator`],
    /// or [`rdmacm_core::Error::Superseded`] if the id has begun to resolve another service since.
    #[doc(alias = "rdma_query_addrinfo")]
    pub fn take_result(&mut self) -> Result<Vec<AddrInfo>> {
        let result = match &self.0 {
            Resolution::Names(result) => result.lock().take(),
            Resolution::Service(service) => service.records(),
            Resolution::Taken => None,
        };
        let result = result.ok_or(Error::NothingResolved)?;
        self.0 = Resolution::Taken;
        result
    }
}

impl ResolveAddrInfo for IdHandle {
    fn resolve_addrinfo<'name>(
        &self,
        addr_info_resolver: &AddrInfoResolver,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<AddrInfoResolution> {
        let node = node.into().map(str::to_owned);
        let service = service.into().map(str::to_owned);
        candidate::check(node.as_deref(), service.as_deref(), hints)?;
        if hints.asks_administrator() {
            let service = services::wanted(node.as_deref(), service.as_deref())?;
            let service = ServiceResolution::begin(self, service, hints)?;
            return Ok(AddrInfoResolution(Resolution::Service(service)));
        }
        let permit = addr_info_resolver
            .limits
            .try_task()
            .ok_or(Error::TooManyResolutions)?;
        let pending = self.begin_resolution()?;
        // Counted from now, not from when the thread begins.
        let until = hints.deadline.until(Instant::now());
        let deadline = until.map_or(Deadline::Never, Deadline::At);
        let hints = hints.clone().deadline(deadline);
        let addr_info_resolver = addr_info_resolver.clone();
        // Sent once the thread runs, so that a failed spawn can cancel it.
        let (sender, receiver) = sync_channel::<PendingResolution>(1);
        let result = SharedResult::default();
        let shared = Arc::clone(&result);
        let work = move || {
            let Ok(pending) = receiver.recv() else { return };
            let finish = |found: Result<Vec<AddrInfo>>| {
                // Released before the event is visible.
                drop(permit);
                let status = found.as_ref().err().map_or(0, |error| -errno(error));
                *shared.lock() = Some(found);
                pending.finish(status);
            };
            // The caller's name resolver may panic on this thread.
            let died = scopeguard::guard(finish, |finish| finish(Err(Error::LookupPanicked)));
            let found = addr_info_resolver.resolve(node.as_deref(), service.as_deref(), &hints);
            ScopeGuard::into_inner(died)(found);
        };
        let thread = thread::Builder::new().name("rdmacm-resolve".to_owned());
        match thread.spawn(work) {
            Ok(_) => {
                // The thread holds the receiver.
                let _ = sender.send(pending);
                Ok(AddrInfoResolution(Resolution::Names(result)))
            }
            Err(error) => {
                pending.cancel();
                Err(Error::NoThread(error.kind()))
            }
        }
    }
}

/// A service that the kernel resolves for the id. The kernel keeps the records.
#[derive(Debug)]
struct ServiceResolution {
    id: IdHandle,
    resolution: IbServiceResolution,
    flags: AddrInfoFlags,
    qp_type: QpType,
}

impl ServiceResolution {
    fn begin(id: &IdHandle, service: IbService, hints: &Hints) -> Result<Self> {
        let kind = Kind::new(Some(PortSpace::IB), hints.qp_type)?;
        // The kernel's own event reports the end.
        let resolution = id.resolve_ib_service(service)?;
        Ok(Self {
            id: id.clone(),
            resolution,
            flags: hints.flags,
            qp_type: kind.qp_type,
        })
    }

    /// The records as addresses; `None` before the event is read.
    fn records(&self) -> Option<Result<Vec<AddrInfo>>> {
        Some(match self.resolution.outcome()? {
            Ok(()) => self.addresses(),
            Err(failure) => Err(Error::Administrator(failure)),
        })
    }

    /// The records as addresses, with the source that the id is bound to and no routes.
    fn addresses(&self) -> Result<Vec<AddrInfo>> {
        let id = &self.id;
        let records = self.resolution.records()?;
        let addresses = id.addresses()?;
        let source = addresses.source;
        let device_port = Self::device_port(id, &addresses)?;
        let info = |record| {
            let destination = services::destination(record);
            let device_port = device_port.clone().map(|device_port| DevicePort {
                destination_gid: Some(destination.gid),
                ..device_port
            });
            AddrInfo {
                flags: self.flags,
                family: Family::Ib,
                qp_type: self.qp_type,
                port_space: PortSpace::IB,
                source,
                destination: Some(destination.into()),
                canonical_name: None,
                paths: Vec::new(),
                connect_data: Vec::new(),
                route: Ok(Route {
                    device_port,
                    path_records: Vec::new(),
                }),
            }
        };
        Ok(records.iter().map(info).collect())
    }

    /// The port that the id is bound to.
    fn device_port(id: &IdHandle, addresses: &Addresses) -> Result<Option<DevicePort>> {
        let gids = addresses.device.map(|_| id.gids()).transpose()?;
        Ok(DevicePort::new(addresses, gids, id.device_lookup()?))
    }
}

/// The error number of a failure's event, positive.
fn errno(error: &Error) -> i32 {
    match error {
        // `ENOENT` says that a name is unknown.
        Error::Rdma(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => libc::ENODEV,
            Some(errno) if errno > 0 => errno,
            _ => libc::EIO,
        },
        Error::LookupDeadline | Error::TooManyLookups => libc::ETIMEDOUT,
        Error::Interfaces(errno) | Error::Name(NameError::System(errno)) if *errno > 0 => *errno,
        Error::Name(error) => name_errno(*error),
        Error::TooManyResolutions | Error::NoThread(_) => libc::EAGAIN,
        Error::LookupPanicked | Error::LookupDropped => libc::EIO,
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

    fn not_opened(errno: i32) -> Error {
        let error = rdmacm_core::Error::Open {
            path: "/dev/infiniband/rdma_cm".into(),
            errno,
            cause: "",
        };
        error.into()
    }

    #[test]
    fn each_failure_has_its_error_number() {
        for (error, number) in [
            (rdmacm_core::Error::Wait { errno: 9 }.into(), 9),
            (rdmacm_core::Error::Busy.into(), libc::EIO),
            (Error::LookupDeadline, libc::ETIMEDOUT),
            (Error::Interfaces(libc::ENOBUFS), libc::ENOBUFS),
            (Error::Interfaces(0), libc::EINVAL),
            (Error::TooManyLookups, libc::ETIMEDOUT),
            (
                Error::NoThread(std::io::ErrorKind::WouldBlock),
                libc::EAGAIN,
            ),
            (not_opened(libc::ENOENT), libc::ENODEV),
            (not_opened(libc::EACCES), libc::EACCES),
            (Error::LookupPanicked, libc::EIO),
            (Error::LookupDropped, libc::EIO),
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
