//! An open device.

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rdmacm_abi::uverbs::{CommandNumber, QueryDevice, QueryPort};
use rdmacm_core::{DeviceId, DriverId, RdmaDevice, Transport};

use crate::async_events::AsyncEvents;
use crate::close_signal::CloseSignal;
use crate::completion_channel::CompletionChannel;
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, Result};
use crate::gid_table::GidEntry;
use crate::limits::DeviceLimits;
use crate::operation::Operation;
use crate::port::PortAttr;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{self, Provider};
use crate::token::Token;
use crate::uverbs::{KernelFile, Uverbs, UverbsFile};

/// An open device, on which everything else is made. Clones are the same
/// context; it is closed when they and all that was made on it are gone.
///
/// While a context is open, removing the device (`rdma link del`) waits until
/// it is closed, and the connection manager reports no removal before that. Only
/// rxe of later kernels (not of Linux 6.1) goes at once. Whoever waits with a
/// completion channel or for asynchronous events hears of it and
/// [closes](Self::close) the context, under all else that was made on it.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_context")]
pub struct Context(Arc<Open>);

#[derive(Debug)]
struct Open {
    device: String,
    limits: DeviceLimits,
    tokens: AtomicU32,
    uverbs: Uverbs,
    /// Memory that the device may use for as long as there is a queue pair.
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.uverbs.close();
        if !self.uverbs.is_quiet() {
            // A child of this process may have the file open, and with it the queue
            // pairs that the kernel would not destroy.
            let kept = self.kept.get_mut();
            std::mem::forget(std::mem::take(kept.unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

impl PartialEq for Context {
    /// Whether both are clones of one open device.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Context {}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::NoNode`] and [`Error::Driver`] for a device that has no verbs
    /// or is driven by something this crate does not know; [`Error::Open`] and
    /// [`Error::OtherNode`] when its node is not to be had; [`Error::Command`]
    /// when the kernel refuses.
    #[doc(alias = "ibv_open_device")]
    pub fn open(device: &RdmaDevice) -> Result<Self> {
        let name = &device.name;
        let node = device.uverbs_node()?.ok_or_else(|| Error::NoNode {
            device: name.clone(),
        })?;
        let provider = provider::choose(&provider::known(), name, node.driver, node.abi_version)?;
        let path = node.path();
        let file = KernelFile::open(name, &path, node.number)?;
        let context = Self::open_file(name, Box::new(file), provider)?;
        // Another device may have the number since netlink was asked.
        if context.limits().node_guid != device.guid {
            return Err(Error::OtherNode {
                path,
                device: name.clone(),
            });
        }
        Ok(context)
    }

    /// Opens a device by a file of the caller's, such as a simulated one, that speaks the
    /// language of this driver.
    ///
    /// # Errors
    /// [`Error::Driver`] for a driver, or a version of its structs, that this crate does not
    /// know; [`Error::Command`] if the file refuses.
    pub fn with_file(
        device: &str,
        file: Box<dyn UverbsFile>,
        driver: DriverId,
        abi_version: u32,
    ) -> Result<Self> {
        let provider = provider::choose(&provider::known(), device, driver, abi_version)?;
        Self::open_file(device, file, provider)
    }

    fn open_file(
        device: &str,
        file: Box<dyn UverbsFile>,
        provider: Arc<dyn Provider>,
    ) -> Result<Self> {
        let uverbs = Uverbs::open(device, file, provider)?;
        let limits = uverbs.ask(Operation::OpenContext, &QueryDevice::default())?;
        Ok(Self(Arc::new(Open {
            device: device.to_owned(),
            limits: DeviceLimits::from(limits),
            // The first token is 1: rings that were replaced read as zeros.
            tokens: AtomicU32::new(1),
            uverbs,
            kept: Mutex::default(),
        })))
    }

    /// Opens the device that an id is attached to.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Error::NoNode`] for a device that is
    /// gone, or that nothing tells from another with the same GUID.
    pub fn open_by_id(id: DeviceId) -> Result<Self> {
        let device = id.look_up().ok_or_else(|| Error::NoNode {
            device: id.guid.to_string(),
        })?;
        Self::open(&device)
    }

    /// One on this file.
    #[cfg(test)]
    pub(crate) fn of_uverbs(uverbs: Uverbs) -> Self {
        use zerocopy::FromZeros;
        Self(Arc::new(Open {
            device: "test0".to_owned(),
            limits: DeviceLimits::from(rdmacm_abi::uverbs::QueryDeviceResponse::new_zeroed()),
            tokens: AtomicU32::new(1),
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

    /// The protocol the device speaks.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.uverbs().provider().transport()
    }

    /// What the device can hold, asked for when it was opened.
    #[must_use]
    #[doc(alias = "ibv_query_device")]
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }

    /// What the port `number`, from 1, is like now.
    ///
    /// # Errors
    /// [`Error::Command`] with `EINVAL` where there is no such port.
    #[doc(alias = "ibv_query_port")]
    pub fn port(&self, number: u8) -> Result<PortAttr> {
        let operation = Operation::QueryPort(number);
        let answer = self.uverbs().ask(operation, &QueryPort::new(number))?;
        Ok(answer.into())
    }

    /// The GID of this index in the table of the port `number`, from 1; `None` for
    /// an empty entry.
    ///
    /// # Errors
    /// [`Error::Gids`] where sysfs has no such port or index, or is not there.
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

    /// All GIDs of the port `number`, from 1. A soft RoCE device has a table of a
    /// thousand entries, of which each is a file to read.
    ///
    /// # Errors
    /// Those of [`port`](Self::port) and [`gid`](Self::gid).
    #[doc(alias = "ibv_query_gid_table")]
    pub fn gids(&self, number: u8) -> Result<Vec<GidEntry>> {
        let indices = 0..self.port(number)?.gid_table_len;
        let entries = indices.map(|index| self.gid(number, index));
        entries.filter_map(Result::transpose).collect()
    }

    /// A new protection domain.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn create_protection_domain(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::create(self)
    }

    /// A new completion queue with room for `entries` completions or more.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, with `EINVAL` for no entries
    /// or more than the device's limit.
    #[doc(alias = "ibv_create_cq")]
    pub fn create_completion_queue(&self, entries: u32) -> Result<CompletionQueue> {
        CompletionQueue::options(entries).create(self)
    }

    /// A new completion channel.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, [`Error::Wait`] where no
    /// descriptor is to be had.
    #[doc(alias = "ibv_create_comp_channel")]
    pub fn create_completion_channel(&self) -> Result<CompletionChannel> {
        CompletionChannel::create(self)
    }

    /// What happens unasked to the objects of this context.
    ///
    /// # Errors
    /// [`Error::Wait`] where no descriptor is to be had.
    #[doc(alias = "ibv_get_async_event")]
    pub fn async_events(&self) -> Result<AsyncEvents> {
        AsyncEvents::of(self)
    }

    /// Closes it under all that was made on it: so that the device can be removed,
    /// say. Commands fail with [`Error::Gone`] from then on, those who wait are
    /// woken, and each request that was outstanding comes back failed when its
    /// completion queue is polled. Waits for commands that are under way, of
    /// which only destroying a queue pair of siw takes long.
    #[doc(alias = "ibv_close_device")]
    pub fn close(&self) {
        self.uverbs().close();
    }

    /// Whether it was closed, or the device has gone. In a child that this process
    /// forks it counts as closed.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.uverbs().is_gone()
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.uverbs().is_elsewhere()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.uverbs().is_quiet()
    }

    pub(crate) fn gone(&self) -> Error {
        self.uverbs().gone()
    }

    pub(crate) fn close_signal(&self) -> Result<&CloseSignal> {
        self.uverbs().close_signal()
    }

    /// Lets go of the device where it is being removed, as [`close`](Self::close)
    /// does: the kernel waits for that. Whoever waits for a completion does so by
    /// itself; who only polls calls this now and then. The first call begins to listen
    /// (an eventfd and a netlink socket); without descriptors for that nothing happens.
    pub fn check_removal(&self) {
        self.uverbs().check_removal();
    }

    /// Keeps memory that the device may use, because the kernel did not end what
    /// uses it, until the context ends; for good if that does not end it either.
    pub(crate) fn keep(&self, what: impl Any + Send) {
        let kept = self.0.kept.lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        kept.push(Box::new(what));
    }

    /// What events call the next object, and requests its queue.
    pub(crate) fn next_token(&self) -> Result<Token> {
        let tokens = &self.0.tokens;
        let next = |now: u32| now.checked_add(1);
        tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .map(Token::new)
            .map_err(|_| {
                let what = "more objects than a context can tell apart";
                Error::answer(Operation::OpenContext, CommandNumber::GET_CONTEXT, what)
            })
    }

    pub(crate) fn uverbs(&self) -> &Uverbs {
        &self.0.uverbs
    }
}
