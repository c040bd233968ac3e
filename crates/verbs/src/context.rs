//! An open device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use rdmacm_abi::uverbs::{QueryDevice, QueryPort};
use rdmacm_core::{DeviceId, DriverId, RdmaDevice, Transport};

use crate::async_events::AsyncEvents;
use crate::close_signal::CloseSignal;
use crate::completion_channel::CompletionChannel;
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, Result};
use crate::gid_table::GidEntry;
use crate::limits::DeviceLimits;
use crate::memory::Memory;
use crate::operation::Operation;
use crate::port::PortAttr;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{self, Provider};
use crate::token::Token;
use crate::uverbs::{KernelFile, OpenFile, Uverbs, UverbsFile};

/// An open device, which creates all other objects. Clones are handles to the same
/// context. It closes when all of them and all objects created on it are dropped.
///
/// While a context is open, removing the device (`rdma link del`) waits until it is closed, and the
/// connection manager does not report the removal before that. (rxe from Linux 7.3 on is removed at
/// once.) Waits on a completion channel or for asynchronous events detect the removal and
/// [close](Self::close) the context, with all its objects.
///
/// A removal that waits is detected by a uevent of the kernel. The kernel sends no uevents to a
/// network namespace of a user namespace other than the initial one (`uevent_net_init`), such as
/// that of a rootless container. There such a removal is not detected, and waits until the program
/// closes the context by itself.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_context")]
pub struct Context(Arc<Open>);

#[derive(Debug)]
struct Open {
    device: String,
    limits: DeviceLimits,
    /// How many objects have a token.
    tokens: AtomicU64,
    /// How many shared receive queues have a number.
    shared_queues: AtomicU32,
    uverbs: Uverbs,
    /// Memory that the device may use as long as a queue pair exists.
    kept: Mutex<Vec<Arc<dyn Memory>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.uverbs.close();
        if !self.uverbs.is_destroyed() {
            // A forked child may hold the file open, and with it queue pairs that the
            // kernel did not destroy.
            let kept = self.kept.get_mut();
            std::mem::forget(std::mem::take(kept));
        }
    }
}

impl PartialEq for Context {
    /// Whether both are handles to the same context.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Context {}

impl Context {
    /// Opens a device. Source: `ibv_open_device(3)`.
    ///
    /// # Errors
    /// [`Error::NoNode`] for a device without verbs, [`Error::Driver`] for an unsupported
    /// driver; [`Error::Devices`] if the device cannot be looked up; [`Error::Open`] and
    /// [`Error::OtherNode`] if its node cannot be opened; [`Error::Map`] without memory;
    /// [`Error::Command`] if the kernel fails.
    #[doc(alias = "ibv_open_device")]
    pub fn open(device: &RdmaDevice) -> Result<Self> {
        let name = &device.name;
        let node = device.uverbs_node()?.ok_or_else(|| Error::NoNode {
            device: name.clone(),
        })?;
        let provider = provider::choose(&provider::all(), name, node.driver, node.abi_version)?;
        let path = node.path();
        let file = KernelFile::open(name, &path, node.number)?;
        let context = Self::open_file(name, OpenFile::Kernel(file), provider)?;
        // Another device may have got the number since the netlink query.
        if context.limits().node_guid != device.guid {
            return Err(Error::OtherNode {
                path,
                device: name.clone(),
            });
        }
        Ok(context)
    }

    /// Opens a device on a file of the caller's, such as a simulated one, which implements
    /// the structs of this driver.
    ///
    /// # Errors
    /// [`Error::Driver`] for an unsupported driver or version of its structs;
    /// [`Error::Command`] if the file fails.
    pub fn with_file(
        device: &str,
        file: Box<dyn UverbsFile>,
        driver: DriverId,
        abi_version: u32,
    ) -> Result<Self> {
        let provider = provider::choose(&provider::all(), device, driver, abi_version)?;
        Self::open_file(device, OpenFile::Other(file), provider)
    }

    fn open_file(device: &str, file: OpenFile, provider: Arc<dyn Provider>) -> Result<Self> {
        let uverbs = Uverbs::open(device, file, provider)?;
        let limits = uverbs.ask(Operation::OpenContext, &QueryDevice::default())?;
        Ok(Self(Arc::new(Open {
            device: device.to_owned(),
            limits: DeviceLimits::from(limits),
            tokens: AtomicU64::new(0),
            shared_queues: AtomicU32::new(0),
            uverbs,
            kept: Mutex::default(),
        })))
    }

    /// Opens the device that an id is attached to.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Error::NoNode`] for a removed device, and for one
    /// that cannot be told from another with the same GUID.
    pub fn open_by_id(id: DeviceId) -> Result<Self> {
        let device = id.look_up().ok_or_else(|| Error::NoNode {
            device: id.guid.to_string(),
        })?;
        Self::open(&device)
    }

    /// Creates a context on this file.
    #[cfg(test)]
    pub(crate) fn of_uverbs(uverbs: Uverbs) -> Self {
        use zerocopy::FromZeros;
        Self(Arc::new(Open {
            device: "test0".to_owned(),
            limits: DeviceLimits::from(rdmacm_abi::uverbs::QueryDeviceResponse::new_zeroed()),
            tokens: AtomicU64::new(0),
            shared_queues: AtomicU32::new(0),
            uverbs,
            kept: Mutex::default(),
        }))
    }

    /// The device's name.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.0.device
    }

    /// The device's driver.
    #[must_use]
    pub fn driver(&self) -> DriverId {
        self.uverbs().provider().driver()
    }

    /// The device's transport.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.uverbs().provider().transport()
    }

    /// The device's limits, queried at the open. Source: `ibv_query_device(3)`.
    #[must_use]
    #[doc(alias = "ibv_query_device")]
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }

    /// Queries the attributes of the port `number`, from 1. Source: `ibv_query_port(3)`.
    ///
    /// # Errors
    /// [`Error::Command`] with `EINVAL` if there is no such port.
    #[doc(alias = "ibv_query_port")]
    pub fn port(&self, number: u8) -> Result<PortAttr> {
        let operation = Operation::QueryPort(number);
        let answer = self.uverbs().ask(operation, &QueryPort::new(number))?;
        Ok(answer.into())
    }

    /// Reads the GID of this index in the table of the port `number`, from 1; `None` for an
    /// empty entry. Source: `ibv_query_gid(3)`, `ibv_query_gid_ex(3)`.
    ///
    /// # Errors
    /// [`Error::Gids`] if sysfs has no such port or index, or is not mounted.
    #[doc(alias = "ibv_query_gid", alias = "ibv_query_gid_ex")]
    pub fn gid(&self, number: u8, index: u32) -> Result<Option<GidEntry>> {
        self.uverbs()
            .gid(number, index)
            .map_err(|error| Error::Gids {
                device: self.0.device.clone(),
                port: number,
                errno: error.raw_os_error().unwrap_or(libc::EINVAL),
            })
    }

    /// Reads all GIDs of the port `number`, from 1. A soft RoCE device has a table of a
    /// thousand entries, each of which is a file. Source: `ibv_query_gid_table(3)`.
    ///
    /// # Errors
    /// Those of [`port`](Self::port) and [`gid`](Self::gid).
    #[doc(alias = "ibv_query_gid_table")]
    pub fn gids(&self, number: u8) -> Result<Vec<GidEntry>> {
        let indices = 0..self.port(number)?.gid_table_len;
        let entries = indices.map(|index| self.gid(number, index));
        entries.filter_map(Result::transpose).collect()
    }

    /// Creates a protection domain. Source: `ibv_alloc_pd(3)`.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn create_protection_domain(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::create(self)
    }

    /// Creates a completion queue of at least `entries` completions. Source: `ibv_create_cq(3)`.
    ///
    /// # Errors
    /// [`Error::Command`], with `EINVAL` for zero entries or more than the device's limit.
    #[doc(alias = "ibv_create_cq")]
    pub fn create_completion_queue(&self, entries: u32) -> Result<CompletionQueue> {
        CompletionQueue::options(entries).create(self)
    }

    /// Creates a completion channel. Source: `ibv_create_comp_channel(3)`.
    ///
    /// # Errors
    /// [`Error::Command`], with `EMFILE` if no file descriptor is left.
    #[doc(alias = "ibv_create_comp_channel")]
    pub fn create_completion_channel(&self) -> Result<CompletionChannel> {
        CompletionChannel::create(self)
    }

    /// Opens the asynchronous events of the objects of this context.
    /// Source: `ibv_get_async_event(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`] if the context is closed.
    #[doc(alias = "ibv_get_async_event")]
    pub fn async_events(&self) -> Result<AsyncEvents> {
        AsyncEvents::open(self)
    }

    /// Closes the context although objects created on it exist, for example so that the
    /// device can be removed. From then on commands fail with [`Error::ContextClosed`], waits
    /// return, and polling a completion queue returns what had completed, then each outstanding
    /// request as failed.
    /// Blocks until commands in progress have ended. Destroying a queue pair of siw takes long; on
    /// RoCE, moving a queue pair to RTR and creating an address handle take up to a second if the
    /// neighbour does not answer.
    ///
    /// If the kernel does not destroy the queue pairs, as after a change of credentials, all requests
    /// are returned without their memory, and those that had completed as failed too, unless an
    /// earlier poll has taken their completions from the device.
    ///
    /// In a forked child, where the context counts as closed, the descriptor stays open until the
    /// context and all its objects are dropped, or until the child ends or executes another program
    /// if requests with memory were outstanding. Source: `ibv_close_device(3)`.
    #[doc(alias = "ibv_close_device")]
    pub fn close(&self) {
        self.uverbs().close();
    }

    /// Whether the context is closed or the device removed. In a forked child the context
    /// counts as closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.uverbs().is_unusable()
    }

    /// Whether this process has inherited it by `fork(2)`, and so cannot use it.
    #[must_use]
    pub fn is_in_child(&self) -> bool {
        self.uverbs().is_in_child()
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        self.uverbs().is_destroyed()
    }

    pub(crate) fn closed_error(&self) -> Error {
        self.uverbs().closed_error()
    }

    pub(crate) fn close_signal(&self) -> Result<&CloseSignal> {
        self.uverbs().close_signal()
    }

    /// Checks whether the device is being removed, and [closes](Self::close) the context if
    /// so, which the kernel waits for. Waiting for a completion does this by itself; a
    /// caller that only polls calls it from time to time. The first call opens an eventfd
    /// and a netlink socket; without file descriptors for them it does nothing. It detects no
    /// removal where the kernel [announces none](Self).
    pub fn check_removal(&self) {
        self.uverbs().check_removal();
    }

    /// Keeps memory that the device may still use because the kernel did not destroy its
    /// user, until the context is closed; leaks it if that does not end the use either, as in a
    /// forked child.
    pub(crate) fn keep(&self, memory: Arc<dyn Memory>) {
        if self.is_in_child() {
            // A thread of the parent may have held the lock at the fork.
            std::mem::forget(memory);
            return;
        }
        self.0.kept.lock().push(memory);
    }

    /// The token of the next object, by which events name it.
    pub(crate) fn next_token(&self) -> Token {
        Token::new(self.0.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// The number of the next shared receive queue, below 2³¹, by which completion queues know it.
    /// It is never used again, so that no completion counts as that of another queue. `None` if
    /// there is none left.
    pub(crate) fn next_shared_queue(&self) -> Option<u32> {
        let next = |now: u32| (now < u32::MAX / 2).then_some(now + 1);
        let numbers = &self.0.shared_queues;
        let number = numbers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        number.ok()
    }

    pub(crate) fn uverbs(&self) -> &Uverbs {
        &self.0.uverbs
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use rdmacm_core::AhAttr;

    use crate::fork_detector::tests::child_ends_while_locked;
    use crate::provider::stub::Stub;
    use crate::shared_receive_queue::SrqOptions;

    fn assert_equals_its_clones_only<T: Clone + Debug + PartialEq>(create: impl Fn() -> T) {
        let (one, other) = (create(), create());
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
    }

    #[test]
    fn handles_are_equal_if_their_object_is_the_same() {
        let context = Stub::new(false).open();
        let domain = context.create_protection_domain().unwrap();
        let (max_wr, max_sge) = (1, 1);
        assert_equals_its_clones_only(|| Stub::new(false).open());
        assert_equals_its_clones_only(|| context.create_protection_domain().unwrap());
        assert_equals_its_clones_only(|| context.create_completion_queue(4).unwrap());
        assert_equals_its_clones_only(|| SrqOptions { max_wr, max_sge }.create(&domain).unwrap());
        assert_equals_its_clones_only(|| {
            let handle = domain.create_address_handle(AhAttr::default());
            handle.unwrap()
        });
    }

    #[test]
    fn a_child_waits_for_no_thread_that_keeps_memory() {
        let context = Stub::new(false).open();
        let domain = context.create_protection_domain().unwrap();
        let buffer = domain.allocate(8).unwrap();
        let own = context.clone();
        let has_ended =
            child_ends_while_locked(|| own.0.kept.lock(), || drop((buffer, domain, context)));
        assert!(has_ended);
    }
}
