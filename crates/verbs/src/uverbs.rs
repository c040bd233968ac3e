//! The open verbs node: all commands of this crate are sent here.

use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::io;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::uverbs::{
    AllocPd, AttachMulticast, Command, CommandNumber, CreateCompletionChannel, CreateQp, DestroyQp,
    DetachMulticast,
};
use zerocopy::FromZeros;

use crate::close_signal::CloseSignal;
use crate::error::{Error, Result};
use crate::fork_detector::ForkDetector;
use crate::gid_table::GidEntry;
use crate::mapping::{AfterClose, MappedMemory, Mapping};
use crate::operation::Operation;
use crate::provider::{NewQueuePair, Provider};
use crate::removal::DeviceNode;
use crate::resource_list::ResourceList;
use crate::revocable_file::RevocableFile;

mod call;
mod file;
mod frame;
mod handle_hasher;
mod kernel;
mod open_file;

pub use call::Call;
pub use file::UverbsFile;
use handle_hasher::HandleHasher;
pub(crate) use kernel::KernelFile;
pub(crate) use open_file::OpenFile;

/// An open verbs node with a context.
///
/// It can be closed while it is in use: then every command fails, waiting threads are woken,
/// and the driver's descriptors and memory are released.
#[derive(Debug)]
pub(crate) struct Uverbs {
    device: String,
    /// The node, whose removal the kernel announces.
    node: Option<DeviceNode>,
    fork_detector: ForkDetector,
    provider: Arc<dyn Provider>,
    file: RevocableFile<OpenFile>,
    /// The descriptor of asynchronous events, which the kernel creates with the context.
    async_events: OnceLock<Arc<RevocableFile>>,
    closed: OnceLock<Closed>,
    close_signal: OnceLock<CloseSignal>,
    mappings: ResourceList<MappedMemory>,
    resources: Mutex<Resources>,
}

/// The driver's resources, which are released when the context is closed.
#[derive(Debug, Default)]
struct Resources {
    channels: Vec<Weak<RevocableFile>>,
    /// How many channels there are when it looks for those that are gone.
    most_channels: usize,
    /// By handle, with the multicast groups that each is attached to: the kernel does not
    /// destroy an attached queue pair.
    queue_pairs: HashMap<u32, Vec<DetachMulticast>, BuildHasherDefault<HandleHasher>>,
}

impl Drop for Uverbs {
    /// In a forked child, a thread of the parent may have been changing the resources at the
    /// fork.
    fn drop(&mut self) {
        if !self.fork_detector.is_same_process() {
            std::mem::forget(std::mem::take(self.resources.get_mut()));
            std::mem::forget(std::mem::take(&mut self.mappings));
        }
    }
}

/// How a context was closed.
#[derive(Clone, Copy, Debug)]
enum Closed {
    /// All queue pairs are destroyed.
    Destroyed,
    /// The kernel did not destroy all queue pairs: they may use memory as long as any process
    /// has the file open.
    InUse,
}

impl Uverbs {
    /// Creates the context of an open node.
    pub(crate) fn open(device: &str, file: OpenFile, provider: Arc<dyn Provider>) -> Result<Self> {
        let uverbs = Self::without_context(device, file, provider)?;
        let answer = uverbs.provider.open(&uverbs)?;
        let operation = Operation::OpenContext;
        let number = answer.async_fd;
        let events = uverbs
            .with(|file| uverbs.adopt_fd(file, operation, CommandNumber::GET_CONTEXT, number))?;
        let _ = uverbs.async_events.set(events);
        Ok(uverbs)
    }

    fn without_context(device: &str, file: OpenFile, provider: Arc<dyn Provider>) -> Result<Self> {
        Ok(Self {
            device: device.to_owned(),
            node: file.node(),
            fork_detector: fork_detector()?,
            provider,
            file: RevocableFile::new(file),
            async_events: OnceLock::new(),
            closed: OnceLock::new(),
            close_signal: OnceLock::new(),
            mappings: ResourceList::default(),
            resources: Mutex::default(),
        })
    }

    /// With an ordinary file, to which commands are written and whose memory can be mapped.
    #[cfg(test)]
    pub(crate) fn with_file(file: File, provider: Arc<dyn Provider>) -> Self {
        let file = OpenFile::Kernel(KernelFile::ordinary(file));
        Self::without_context("test0", file, provider).expect("a page")
    }

    /// The GID at `index` of the table of `port`, from 1.
    pub(crate) fn gid(&self, port: u8, index: u32) -> io::Result<Option<GidEntry>> {
        let gone = || io::Error::from_raw_os_error(libc::ENODEV);
        self.with_open(|file| file.gid(port, index))
            .unwrap_or_else(|| Err(gone()))
    }

    /// The device's driver.
    pub(crate) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    /// Sends one command and returns its answer. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::Command`] if the kernel refuses, [`Error::ContextClosed`] if the device is gone.
    pub(crate) fn ask<C: Command>(&self, operation: Operation, request: &C) -> Result<C::Response> {
        self.with(|file| ask(file, operation, request))
    }

    /// Makes the device process the send queue of this queue pair.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub(crate) fn ring_doorbell(&self, queue_pair: u32) -> Result<()> {
        match self.try_doorbell(queue_pair) {
            Some(Ok(())) => Ok(()),
            failed => Err(self.doorbell_failed(failed)),
        }
    }

    /// As [`ring_doorbell`](Self::ring_doorbell); `None` if the file is closed. What it returns
    /// is small: [`doorbell_failed`](Self::doorbell_failed) makes an error of it. The caller has
    /// checked that this is no forked child.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    pub(crate) fn try_doorbell(&self, queue_pair: u32) -> Option<io::Result<()>> {
        self.file.with(|file| file.ring_doorbell(queue_pair))
    }

    /// The error of a doorbell that was not accepted.
    #[cold]
    pub(crate) fn doorbell_failed(&self, failed: Option<io::Result<()>>) -> Error {
        match failed {
            Some(Err(error)) if error.raw_os_error() != Some(libc::EIO) => {
                Error::command(Operation::Send, CommandNumber::POST_SEND, &error)
            }
            _ => {
                // Closed already, or the kernel has disconnected the file from the device.
                self.close();
                self.closed_error()
            }
        }
    }

    /// Calls `using` with the file; `None` if it is closed, or in a forked child: a thread of the
    /// parent that was closing it at the fork would be waited for.
    fn with_open<T>(&self, using: impl FnOnce(&OpenFile) -> T) -> Option<T> {
        if self.is_in_child() {
            return None;
        }
        self.file.with(using)
    }

    /// Calls `using` with the open file, which is not closed meanwhile. New resources of the
    /// driver must be recorded in this call.
    fn with<T>(&self, using: impl FnOnce(&OpenFile) -> Result<T>) -> Result<T> {
        match self.with_open(using) {
            Some(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                // The kernel has disconnected the file from the device.
                self.close();
                Err(self.closed_error())
            }
            Some(result) => result,
            None => Err(self.closed_error()),
        }
    }

    /// Maps memory of the driver, at the offset of an answer.
    ///
    /// # Errors
    /// [`Error::Map`] if the kernel refuses, [`Error::ContextClosed`] if the device is gone.
    pub(crate) fn map(
        &self,
        offset: u64,
        length: usize,
        after_close: AfterClose,
    ) -> Result<Mapping> {
        self.with(|file| {
            let (file, fork_detector) = (file.memory(), &self.fork_detector);
            let mapped = MappedMemory::new(file, offset, length, after_close, fork_detector);
            let mapped = mapped.map_err(|error| Error::map(&error))?;
            let mapped = self.mappings.add(|entry| mapped.listed(entry));
            Ok(Mapping::whole(mapped))
        })
    }

    /// Creates a protection domain, and returns its handle.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let answer = self.ask(Operation::CreateProtectionDomain, &AllocPd::default())?;
        Ok(answer.handle)
    }

    /// Creates a completion channel, and returns its descriptor.
    pub(crate) fn create_completion_channel(&self) -> Result<Arc<RevocableFile>> {
        let operation = Operation::CreateCompletionChannel;
        self.with(|file| {
            let answer = ask(file, operation, &CreateCompletionChannel::default())?;
            let command = CommandNumber::CREATE_COMP_CHANNEL;
            self.adopt_fd(file, operation, command, answer.fd)
        })
    }

    /// The descriptor of asynchronous events.
    pub(crate) fn async_events(&self) -> Option<Arc<RevocableFile>> {
        self.async_events.get().map(Arc::clone)
    }

    /// Takes ownership of a descriptor that an answer names.
    fn adopt_fd(
        &self,
        file: &OpenFile,
        operation: Operation,
        command: CommandNumber,
        number: u32,
    ) -> Result<Arc<RevocableFile>> {
        let fd = file
            .take_fd(number)
            .ok_or_else(|| Error::answer(operation, command, "an invalid descriptor"))?;
        let file = Arc::new(RevocableFile::new(File::from(fd)));
        let mut resources = self.resources();
        let channels = &mut resources.channels;
        channels.push(Arc::downgrade(&file));
        // Not each time, so that this takes the same time for any number of them on average.
        if channels.len() > resources.most_channels {
            resources.channels.retain(|one| one.strong_count() > 0);
            resources.most_channels = 2 * resources.channels.len();
        }
        Ok(file)
    }

    /// Creates a queue pair, and records it as one that may use memory.
    pub(crate) fn create_qp(
        &self,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair> {
        let created = self.provider.create_qp(self, operation, request)?;
        let handle = created.answer.handle;
        let record = || self.resources().queue_pairs.insert(handle, Vec::new());
        // If the file was closed in between, the queue pair has no requests.
        let recorded = self.with_open(|_| record());
        recorded.map(|_| created).ok_or_else(|| self.closed_error())
    }

    /// Destroys a queue pair. Returns whether it no longer uses memory.
    pub(crate) fn destroy_qp(&self, handle: u32) -> bool {
        let destroyed = self.with_open(|file| {
            // Before the kernel can reuse the handle.
            let groups = self.resources().queue_pairs.remove(&handle);
            let groups = groups.unwrap_or_default();
            let destroyed = destroy_qp(file, handle, &groups);
            if !destroyed {
                self.resources().queue_pairs.insert(handle, groups);
            }
            destroyed
        });
        destroyed.unwrap_or_else(|| self.is_destroyed())
    }

    /// Attaches a queue pair to a multicast group, and records that.
    pub(crate) fn attach(&self, operation: Operation, group: &AttachMulticast) -> Result<()> {
        self.with(|file| {
            ask(file, operation, group)?;
            let mut resources = self.resources();
            let groups = resources.queue_pairs.entry(group.handle).or_default();
            let detach = detachment(group);
            if !groups.contains(&detach) {
                groups.push(detach);
            }
            Ok(())
        })
    }

    /// Detaches a queue pair; `None` if it is not attached.
    pub(crate) fn detach(
        &self,
        operation: Operation,
        group: &AttachMulticast,
    ) -> Result<Option<()>> {
        self.with(|file| {
            let detach = detachment(group);
            let mut resources = self.resources();
            let groups = resources.queue_pairs.entry(group.handle).or_default();
            let Some(index) = groups.iter().position(|one| *one == detach) else {
                return Ok(None);
            };
            ask(file, operation, &detach)?;
            groups.swap_remove(index);
            Ok(Some(()))
        })
    }

    /// Destroys an object that no other object depends on; returns whether it is destroyed.
    /// The kernel refuses only after a change of credentials, and then every command: the
    /// object is then destroyed when the file is closed. A forked child destroys nothing.
    pub(crate) fn destroy<C: Command>(&self, request: &C) -> bool {
        let destroyed = self.with_open(|file| destroy(file, request));
        destroyed.unwrap_or_else(|| self.is_destroyed())
    }

    /// Destroys an object that was just created.
    pub(crate) fn undo<C: Command>(&self, request: &C) {
        self.destroy(request);
    }

    /// Closes the context while it is in use, after pending commands have returned, and
    /// releases the driver's descriptors and memory. After that the device does not access
    /// memory of this process.
    pub(crate) fn close(&self) {
        if self.is_in_child() {
            // Its copy of the descriptor is closed when the last object is dropped, which is never
            // if requests are outstanding: their memory is leaked.
            self.file.abandon();
            return;
        }
        let closed = self.file.close(|file| {
            // A process that has inherited the descriptor keeps the file open, so closing
            // it here does not destroy the queue pairs.
            let queue_pairs = std::mem::take(&mut self.resources().queue_pairs);
            let mut all_destroyed = true;
            for (handle, groups) in queue_pairs {
                all_destroyed &= destroy_qp(file, handle, &groups);
            }
            let how = if all_destroyed {
                Closed::Destroyed
            } else {
                Closed::InUse
            };
            let _ = self.closed.set(how);
            // Before others find the file closed, so that they read the memory that remains.
            for mapping in self.mappings.all() {
                // Without memory for this, the driver's memory stays mapped, and the driver waits
                // until the mapping is dropped.
                let _ = mapping.detach();
            }
        });
        if closed.is_none() {
            return;
        }
        let channels = std::mem::take(&mut self.resources().channels);
        for channel in channels.iter().filter_map(Weak::upgrade) {
            channel.close(|_| ());
        }
        if let Some(close_signal) = self.close_signal.get() {
            close_signal.set();
        }
    }

    /// Detects a forked child of the process that opened it.
    pub(crate) fn fork_detector(&self) -> ForkDetector {
        self.fork_detector.clone()
    }

    /// Whether it is closed. That it may be a forked child is not checked.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Whether it is closed. It counts as closed in a forked child of the process that opened
    /// it.
    pub(crate) fn is_unusable(&self) -> bool {
        self.closed.get().is_some() || self.is_in_child()
    }

    /// Whether this is a forked child of the process that opened it, without the driver's
    /// memory.
    pub(crate) fn is_in_child(&self) -> bool {
        !self.fork_detector.is_same_process()
    }

    /// After [`is_closed`](Self::is_closed): waits until its memory was replaced.
    pub(crate) fn wait_until_closed(&self) {
        let found = self.file.with(|_| ());
        debug_assert!(found.is_none(), "it is closed");
    }

    /// Whether it is closed and all its queue pairs are destroyed.
    pub(crate) fn is_destroyed(&self) -> bool {
        matches!(self.closed.get(), Some(Closed::Destroyed))
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::ContextClosed {
            device: self.device.clone(),
        }
    }

    /// Ends waits when the context is closed.
    pub(crate) fn close_signal(&self) -> Result<&CloseSignal> {
        if let Some(close_signal) = self.close_signal.get() {
            return Ok(close_signal);
        }
        let created = CloseSignal::new(self.node.is_some())?;
        let close_signal = self.close_signal.get_or_init(|| created);
        // The removal may have been announced before the socket was open: the kernel removes
        // the node before it announces that.
        if self.node.is_some_and(|node| !node.exists()) {
            self.close();
        }
        if self.is_unusable() {
            close_signal.set();
        }
        Ok(close_signal)
    }

    /// Closes the context if the kernel has announced the device's removal.
    pub(crate) fn check_removal(&self) {
        if self.is_in_child() {
            // The announcements are the parent's to read: they share the socket.
            return;
        }
        let Ok(close_signal) = self.close_signal() else {
            return;
        };
        let removals = close_signal.removals().zip(self.node);
        if removals.is_some_and(|(removals, node)| removals.has_removed(node)) {
            self.close();
        }
    }

    fn resources(&self) -> MutexGuard<'_, Resources> {
        self.resources.lock()
    }
}

fn fork_detector() -> Result<ForkDetector> {
    ForkDetector::new().map_err(|error| Error::map(&error))
}

fn ask<C: Command>(file: &OpenFile, operation: Operation, request: &C) -> Result<C::Response> {
    let mut response = C::Response::new_zeroed();
    match file.execute(&mut Call::new(request, &mut response)) {
        Ok(()) => Ok(response),
        Err(error) => Err(Error::command(operation, C::NUMBER, &error)),
    }
}

fn detachment(group: &AttachMulticast) -> DetachMulticast {
    DetachMulticast {
        lid: group.lid,
        ..DetachMulticast::new(group.handle, group.gid)
    }
}

/// Returns whether the queue pair no longer uses memory.
fn destroy_qp(file: &OpenFile, handle: u32, groups: &[DetachMulticast]) -> bool {
    for group in groups {
        destroy(file, group);
    }
    destroy(file, &DestroyQp::new(handle))
}

/// Returns whether the object is destroyed.
fn destroy<C: Command>(file: &OpenFile, request: &C) -> bool {
    let mut response = C::Response::new_zeroed();
    match file.execute(&mut Call::new(request, &mut response)) {
        Ok(()) => true,
        Err(error) => file.is_destroyed_by(&error),
    }
}
