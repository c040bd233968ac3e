//! The one point where commands leave this crate.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rdmacm_abi::uverbs::{
    AllocPd, AttachMulticast, Command, CommandNumber, CreateCompletionChannel, CreateQp, DestroyQp,
    DetachMulticast,
};
use zerocopy::FromZeros;

use crate::close_signal::CloseSignal;
use crate::error::{Error, Result};
use crate::gid_table::GidEntry;
use crate::mapping::{MappedMemory, Mapping};
use crate::operation::Operation;
use crate::process_mark::ProcessMark;
use crate::provider::{NewQueuePair, Provider};
use crate::removal;
use crate::revocable_file::RevocableFile;

mod call;
mod file;
mod frame;
mod kernel;

pub use call::Call;
pub use file::UverbsFile;
pub(crate) use kernel::KernelFile;

/// An open verbs node that is a context.
///
/// It can be closed under those who use it: then every command fails, those who
/// wait are woken, and the driver is rid of its descriptors and its memory.
#[derive(Debug)]
pub(crate) struct Uverbs {
    device: String,
    /// The number of the node, by which its removal is announced.
    node: Option<u64>,
    mark: Arc<ProcessMark>,
    provider: Arc<dyn Provider>,
    file: RevocableFile<Box<dyn UverbsFile>>,
    /// Where the kernel reports about the context's objects. It makes this
    /// descriptor unasked.
    async_events: OnceLock<Arc<RevocableFile>>,
    ended: OnceLock<Ended>,
    close_signal: OnceLock<CloseSignal>,
    resources: Mutex<Resources>,
}

/// What the driver has given out and is to get back when this ends.
#[derive(Debug, Default)]
struct Resources {
    channels: Vec<Weak<RevocableFile>>,
    mappings: Vec<Weak<MappedMemory>>,
    /// By their handles, with the multicast groups they are to leave: the kernel
    /// destroys none that is attached.
    queue_pairs: HashMap<u32, Vec<DetachMulticast>>,
}

/// How a context ended.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// No queue pair is left.
    Quiet,
    /// The kernel would not destroy them all: they may use memory for as long as
    /// somebody has the file open.
    Unquiet,
}

impl Uverbs {
    /// Makes a file of the device's node a context.
    pub(crate) fn open(
        device: &str,
        file: Box<dyn UverbsFile>,
        provider: Arc<dyn Provider>,
    ) -> Result<Self> {
        let uverbs = Self::without_context(device, file, provider)?;
        let answer = uverbs.provider.open(&uverbs)?;
        let operation = Operation::OpenContext;
        let number = answer.async_fd;
        let events = uverbs
            .with(|file| uverbs.take_over(file, operation, CommandNumber::GET_CONTEXT, number))?;
        let _ = uverbs.async_events.set(events);
        Ok(uverbs)
    }

    fn without_context(
        device: &str,
        file: Box<dyn UverbsFile>,
        provider: Arc<dyn Provider>,
    ) -> Result<Self> {
        Ok(Self {
            device: device.to_owned(),
            node: file.node(),
            mark: mark()?,
            provider,
            file: RevocableFile::new(file),
            async_events: OnceLock::new(),
            ended: OnceLock::new(),
            close_signal: OnceLock::new(),
            resources: Mutex::default(),
        })
    }

    /// Of an ordinary file, to which commands are written and whose memory can be mapped.
    #[cfg(test)]
    pub(crate) fn of_file(file: File, provider: Arc<dyn Provider>) -> Self {
        let file = Box::new(KernelFile::ordinary(file));
        Self::without_context("test0", file, provider).expect("a page")
    }

    /// The GID at `index` of the table of `port`, from 1.
    pub(crate) fn gid(&self, port: u8, index: u32) -> std::io::Result<Option<GidEntry>> {
        let gone = || std::io::Error::from_raw_os_error(libc::ENODEV);
        self.file
            .with(|file| file.gid(port, index))
            .unwrap_or_else(|| Err(gone()))
    }

    /// The device's driver.
    pub(crate) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    /// Sends one command and gives its answer: the way down that every
    /// command of this crate takes. Nothing is allocated on it.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, [`Error::Gone`] when the device
    /// has gone.
    pub(crate) fn ask<C: Command>(&self, operation: Operation, request: &C) -> Result<C::Response> {
        self.with(|file| ask(file, operation, request))
    }

    /// What `using` makes of the open file. The file is not closed meanwhile, and
    /// what the driver gives out is to be noted meanwhile.
    fn with<T>(&self, using: impl FnOnce(&dyn UverbsFile) -> Result<T>) -> Result<T> {
        match self.file.with(|file| using(&**file)) {
            Some(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                // The kernel has disconnected the file from the device.
                self.close();
                Err(self.gone())
            }
            Some(result) => result,
            None => Err(self.gone()),
        }
    }

    /// Maps memory of the driver's, by the offset it told.
    ///
    /// # Errors
    /// [`Error::Map`] when the kernel refuses, [`Error::Gone`] when the device has
    /// gone.
    pub(crate) fn map(&self, offset: u64, length: usize) -> Result<Mapping> {
        self.with(|file| {
            let mapped = MappedMemory::new(file.memory(), offset, length, &self.mark);
            let mapped = Arc::new(mapped.map_err(|error| Error::map(&error))?);
            let mut resources = self.resources();
            resources.mappings.retain(|one| one.strong_count() > 0);
            resources.mappings.push(Arc::downgrade(&mapped));
            Ok(Mapping::of(&mapped))
        })
    }

    /// The handle of a new protection domain.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let answer = self.ask(Operation::CreateProtectionDomain, &AllocPd::default())?;
        Ok(answer.handle)
    }

    /// The descriptor of a new completion channel.
    pub(crate) fn create_completion_channel(&self) -> Result<Arc<RevocableFile>> {
        let operation = Operation::CreateCompletionChannel;
        self.with(|file| {
            let answer = ask(file, operation, &CreateCompletionChannel::default())?;
            let command = CommandNumber::CREATE_COMP_CHANNEL;
            self.take_over(file, operation, command, answer.fd)
        })
    }

    /// The descriptor of asynchronous events.
    pub(crate) fn async_events(&self) -> Option<Arc<RevocableFile>> {
        self.async_events.get().map(Arc::clone)
    }

    /// Takes over a descriptor that the kernel made for an answer.
    fn take_over(
        &self,
        file: &dyn UverbsFile,
        operation: Operation,
        command: CommandNumber,
        number: u32,
    ) -> Result<Arc<RevocableFile>> {
        let fd = file
            .take_fd(number)
            .ok_or_else(|| Error::answer(operation, command, "a descriptor that is none"))?;
        let file = Arc::new(RevocableFile::new(File::from(fd)));
        let mut resources = self.resources();
        resources.channels.retain(|one| one.strong_count() > 0);
        resources.channels.push(Arc::downgrade(&file));
        Ok(file)
    }

    /// Makes a queue pair, and notes it as one that may use memory.
    pub(crate) fn create_qp(
        &self,
        operation: Operation,
        request: CreateQp,
    ) -> Result<NewQueuePair> {
        let made = self.provider.create_qp(self, operation, request)?;
        let handle = made.answer.handle;
        let note = || self.resources().queue_pairs.insert(handle, Vec::new());
        // Closed in between, it is nobody's, and has no requests.
        let noted = self.file.with(|_| note());
        noted.map(|_| made).ok_or_else(|| self.gone())
    }

    /// Destroys a queue pair. Whether it uses no memory any more.
    pub(crate) fn destroy_qp(&self, handle: u32) -> bool {
        let destroyed = self.file.with(|file| {
            // Before its handle becomes another's.
            let groups = self.resources().queue_pairs.remove(&handle);
            let groups = groups.unwrap_or_default();
            let destroyed = destroy_qp(&**file, handle, &groups);
            if !destroyed {
                self.resources().queue_pairs.insert(handle, groups);
            }
            destroyed
        });
        destroyed.unwrap_or_else(|| self.is_quiet())
    }

    /// Attaches a queue pair to a multicast group, and notes that.
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

    /// Detaches it again; `None` if it is not attached.
    pub(crate) fn detach(
        &self,
        operation: Operation,
        group: &AttachMulticast,
    ) -> Result<Option<()>> {
        self.with(|file| {
            let detach = detachment(group);
            let mut resources = self.resources();
            let groups = resources.queue_pairs.entry(group.handle).or_default();
            let Some(place) = groups.iter().position(|one| *one == detach) else {
                return Ok(None);
            };
            ask(file, operation, &detach)?;
            groups.swap_remove(place);
            Ok(Some(()))
        })
    }

    /// Destroys what nothing is made from any more; whether the device knows of it
    /// no longer. The kernel refuses only where it would refuse everything, after
    /// a change of credentials: the object then goes with the descriptor.
    pub(crate) fn destroy<C: Command>(&self, request: &C) -> bool {
        let destroyed = self.file.with(|file| destroy(&**file, request));
        destroyed.unwrap_or_else(|| self.is_quiet())
    }

    /// Destroys what was just made and could not be completed.
    pub(crate) fn undo<C: Command>(&self, request: &C) {
        self.destroy(request);
    }

    /// Ends the context under those who use it, once commands that are under way
    /// are back: the driver is rid of its descriptors and its memory. From
    /// then on the device touches nothing of this process.
    pub(crate) fn close(&self) {
        if !self.mark.is_here() {
            // What goes in a child of this process is its copies alone.
            self.file.close(|_| ());
            let _ = self.ended.set(Ended::Unquiet);
            return;
        }
        let closed = self.file.close(|file| {
            // Who has inherited the descriptor keeps the file, so closing it is
            // not enough to end these.
            let queue_pairs = std::mem::take(&mut self.resources().queue_pairs);
            let mut quiet = true;
            for (handle, groups) in queue_pairs {
                quiet &= destroy_qp(&**file, handle, &groups);
            }
            let ended = if quiet { Ended::Quiet } else { Ended::Unquiet };
            let _ = self.ended.set(ended);
        });
        if closed.is_none() {
            return;
        }
        let Resources {
            channels, mappings, ..
        } = std::mem::take(&mut *self.resources());
        for channel in channels.iter().filter_map(Weak::upgrade) {
            channel.close(|_| ());
        }
        for mapping in mappings.iter().filter_map(Weak::upgrade) {
            // Short of memory for it, the mapping stays the driver's, which then
            // waits until it is dropped.
            let _ = mapping.detach();
        }
        if let Some(close_signal) = self.close_signal.get() {
            close_signal.set();
        }
    }

    /// In a child of the process that opened it, it counts as closed.
    pub(crate) fn is_gone(&self) -> bool {
        self.ended.get().is_some() || self.is_elsewhere()
    }

    /// Whether this is a child of the process that opened it, where none of the
    /// driver's memory is.
    pub(crate) fn is_elsewhere(&self) -> bool {
        !self.mark.is_here()
    }

    /// Whether it is closed, and no queue pair is left that may use memory.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.ended.get(), Some(Ended::Quiet))
    }

    pub(crate) fn gone(&self) -> Error {
        Error::Gone {
            device: self.device.clone(),
        }
    }

    /// What those who wait listen to besides.
    pub(crate) fn close_signal(&self) -> Result<&CloseSignal> {
        if let Some(close_signal) = self.close_signal.get() {
            return Ok(close_signal);
        }
        let made = CloseSignal::new()?;
        let close_signal = self.close_signal.get_or_init(|| made);
        // What was announced before this listened: the node has gone before it is.
        if self.node.is_some_and(|node| !removal::exists(node)) {
            self.close();
        }
        if self.is_gone() {
            close_signal.set();
        }
        Ok(close_signal)
    }

    /// Closes if the kernel has announced that the device goes.
    pub(crate) fn check_removal(&self) {
        let Ok(close_signal) = self.close_signal() else {
            return;
        };
        let removals = close_signal.removals().zip(self.node);
        if removals.is_some_and(|(removals, node)| removals.tell_of(node)) {
            self.close();
        }
    }

    fn resources(&self) -> MutexGuard<'_, Resources> {
        self.resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark() -> Result<Arc<ProcessMark>> {
    let mark = ProcessMark::new().map_err(|error| Error::map(&error))?;
    Ok(Arc::new(mark))
}

fn ask<C: Command>(
    file: &dyn UverbsFile,
    operation: Operation,
    request: &C,
) -> Result<C::Response> {
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

/// Whether it uses no memory any more.
fn destroy_qp(file: &dyn UverbsFile, handle: u32, groups: &[DetachMulticast]) -> bool {
    for group in groups {
        destroy(file, group);
    }
    destroy(file, &DestroyQp::new(handle))
}

/// Whether the device does not know it any more.
fn destroy<C: Command>(file: &dyn UverbsFile, request: &C) -> bool {
    let mut response = C::Response::new_zeroed();
    match file.execute(&mut Call::new(request, &mut response)) {
        Ok(()) => true,
        // What a device had goes with it.
        Err(error) => error.raw_os_error() == Some(libc::EIO),
    }
}
