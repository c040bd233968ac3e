//! The one point where commands leave this crate.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rdmacm_abi::uverbs::{
    AllocPd, AttachMulticast, Command, CommandNumber, CreateCompletionChannel, CreateQp, DestroyQp,
    DetachMulticast,
};
use zerocopy::FromZeros;

use crate::closable::Closable;
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mapping::{Mapped, Mapping};
use crate::operation::Operation;
use crate::process_mark::ProcessMark;
use crate::provider::{NewQueuePair, Provider};
use crate::removal;

mod frame;
mod kernel;

/// An open verbs node that is a context.
///
/// It can be closed under those who use it: then every command fails, those who
/// wait are woken, and the driver is rid of its descriptors and its memory.
#[derive(Debug)]
pub struct Uverbs {
    device: String,
    number: u64,
    mark: Arc<ProcessMark>,
    provider: Arc<dyn Provider>,
    file: Closable,
    /// Where the kernel reports about the context's objects. It makes this
    /// descriptor unasked.
    async_events: OnceLock<Arc<Closable>>,
    ended: OnceLock<Ended>,
    ending: OnceLock<Ending>,
    given: Mutex<Given>,
}

/// What the driver has given out and is to get back when this ends.
#[derive(Debug, Default)]
struct Given {
    channels: Vec<Weak<Closable>>,
    mappings: Vec<Weak<Mapped>>,
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
    /// Opens the node at `path`, which must have this device number, and makes
    /// it a context.
    pub(crate) fn open(
        device: &str,
        path: &Path,
        number: u64,
        provider: Arc<dyn Provider>,
    ) -> Result<Self> {
        let uverbs = Self {
            device: device.to_owned(),
            number,
            mark: mark()?,
            provider,
            file: Closable::new(open_node(device, path, number)?),
            async_events: OnceLock::new(),
            ended: OnceLock::new(),
            ending: OnceLock::new(),
            given: Mutex::default(),
        };
        let answer = uverbs.provider.open(&uverbs)?;
        let events = uverbs.take_over(
            Operation::OpenContext,
            CommandNumber::GET_CONTEXT,
            answer.async_fd,
        )?;
        let _ = uverbs.async_events.set(events);
        Ok(uverbs)
    }

    /// A file that answers no command, but can be mapped as a driver's memory.
    #[cfg(test)]
    pub(crate) fn of_file(file: File, provider: Arc<dyn Provider>) -> Self {
        Self {
            device: "test0".to_owned(),
            // One that is there: that of /dev/null.
            number: libc::makedev(1, 3),
            mark: mark().expect("a page"),
            provider,
            file: Closable::new(file),
            async_events: OnceLock::new(),
            ended: OnceLock::new(),
            ending: OnceLock::new(),
            given: Mutex::default(),
        }
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
    pub fn ask<C: Command>(&self, operation: Operation, request: &C) -> Result<C::Response> {
        self.with(|file| ask(file, operation, request))
    }

    /// What `using` makes of the open file. The file is not closed meanwhile, and
    /// what the driver gives out is to be noted meanwhile.
    fn with<T>(&self, using: impl FnOnce(&File) -> Result<T>) -> Result<T> {
        match self.file.with(using) {
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
    pub fn map(&self, offset: u64, length: usize) -> Result<Mapping> {
        self.with(|file| {
            let mapped = Mapped::new(file, offset, length, &self.mark);
            let mapped = Arc::new(mapped.map_err(|error| Error::map(&error))?);
            let mut given = self.given();
            given.mappings.retain(|one| one.strong_count() > 0);
            given.mappings.push(Arc::downgrade(&mapped));
            Ok(Mapping::of(&mapped))
        })
    }

    /// The handle of a new protection domain.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let answer = self.ask(Operation::CreateProtectionDomain, &AllocPd::default())?;
        Ok(answer.handle)
    }

    /// The descriptor of a new completion channel.
    pub(crate) fn create_completion_channel(&self) -> Result<Arc<Closable>> {
        let operation = Operation::CreateCompletionChannel;
        self.with(|file| {
            let answer = ask(file, operation, &CreateCompletionChannel::default())?;
            let command = CommandNumber::CREATE_COMP_CHANNEL;
            self.take_over(operation, command, answer.fd)
        })
    }

    /// The descriptor of asynchronous events.
    pub(crate) fn async_events(&self) -> Option<Arc<Closable>> {
        self.async_events.get().map(Arc::clone)
    }

    /// Takes over a descriptor that the kernel made for an answer.
    fn take_over(
        &self,
        operation: Operation,
        command: CommandNumber,
        number: u32,
    ) -> Result<Arc<Closable>> {
        let fd = kernel::own(number)
            .ok_or_else(|| Error::answer(operation, command, "a descriptor that is none"))?;
        let file = Arc::new(Closable::new(File::from(fd)));
        let mut given = self.given();
        given.channels.retain(|one| one.strong_count() > 0);
        given.channels.push(Arc::downgrade(&file));
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
        let note = || self.given().queue_pairs.insert(handle, Vec::new());
        // Closed in between, it is nobody's, and has no requests.
        let noted = self.file.with(|_| note());
        noted.map(|_| made).ok_or_else(|| self.gone())
    }

    /// Destroys a queue pair. Whether it uses no memory any more.
    pub(crate) fn destroy_qp(&self, handle: u32) -> bool {
        let destroyed = self.file.with(|file| {
            // Before its handle becomes another's.
            let groups = self.given().queue_pairs.remove(&handle);
            let groups = groups.unwrap_or_default();
            let destroyed = destroy_qp(file, handle, &groups);
            if !destroyed {
                self.given().queue_pairs.insert(handle, groups);
            }
            destroyed
        });
        destroyed.unwrap_or_else(|| self.is_quiet())
    }

    /// Attaches a queue pair to a multicast group, and notes that.
    pub(crate) fn attach(&self, operation: Operation, group: &AttachMulticast) -> Result<()> {
        self.with(|file| {
            ask(file, operation, group)?;
            let mut given = self.given();
            let groups = given.queue_pairs.entry(group.handle).or_default();
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
            let mut given = self.given();
            let groups = given.queue_pairs.entry(group.handle).or_default();
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
        let destroyed = self.file.with(|file| destroy(file, request));
        destroyed.unwrap_or_else(|| self.is_quiet())
    }

    /// Destroys what was just made and could not be completed.
    pub fn undo<C: Command>(&self, request: &C) {
        self.destroy(request);
    }

    /// Ends the context under those who use it, once commands that are under way
    /// are back: the driver is rid of its descriptors and its memory. From
    /// then on the device touches nothing of this process.
    pub fn close(&self) {
        if !self.mark.is_here() {
            // What goes in a child of this process is its copies alone.
            self.file.close(|_| ());
            let _ = self.ended.set(Ended::Unquiet);
            return;
        }
        let closed = self.file.close(|file| {
            // Who has inherited the descriptor keeps the file, so closing it is
            // not enough to end these.
            let queue_pairs = std::mem::take(&mut self.given().queue_pairs);
            let mut quiet = true;
            for (handle, groups) in queue_pairs {
                quiet &= destroy_qp(file, handle, &groups);
            }
            let ended = if quiet { Ended::Quiet } else { Ended::Unquiet };
            let _ = self.ended.set(ended);
        });
        if closed.is_none() {
            return;
        }
        let Given {
            channels, mappings, ..
        } = std::mem::take(&mut *self.given());
        for channel in channels.iter().filter_map(Weak::upgrade) {
            channel.close(|_| ());
        }
        for mapping in mappings.iter().filter_map(Weak::upgrade) {
            // Short of memory for it, the mapping stays the driver's, which then
            // waits until it is dropped.
            let _ = mapping.detach();
        }
        if let Some(ending) = self.ending.get() {
            ending.set();
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
    pub(crate) fn ending(&self) -> Result<&Ending> {
        if let Some(ending) = self.ending.get() {
            return Ok(ending);
        }
        let made = Ending::new()?;
        let ending = self.ending.get_or_init(|| made);
        // What was announced before this listened: the node has gone before it is.
        if !removal::exists(self.number) {
            self.close();
        }
        if self.is_gone() {
            ending.set();
        }
        Ok(ending)
    }

    /// Closes if the kernel has announced that the device goes.
    pub(crate) fn heed_removal(&self) {
        let Ok(ending) = self.ending() else { return };
        let removals = ending.removals();
        if removals.is_some_and(|removals| removals.tell_of(self.number)) {
            self.close();
        }
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark() -> Result<Arc<ProcessMark>> {
    let mark = ProcessMark::new().map_err(|error| Error::map(&error))?;
    Ok(Arc::new(mark))
}

fn ask<C: Command>(file: &File, operation: Operation, request: &C) -> Result<C::Response> {
    let mut response = C::Response::new_zeroed();
    match kernel::transact(file, request, &mut response) {
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
fn destroy_qp(file: &File, handle: u32, groups: &[DetachMulticast]) -> bool {
    for group in groups {
        destroy(file, group);
    }
    destroy(file, &DestroyQp::new(handle))
}

/// Whether the device does not know it any more.
fn destroy<C: Command>(file: &File, request: &C) -> bool {
    let mut response = C::Response::new_zeroed();
    match kernel::transact(file, request, &mut response) {
        Ok(()) => true,
        // What a device had goes with it.
        Err(error) => error.raw_os_error() == Some(libc::EIO),
    }
}

/// Opens a node, closed on exec, and makes sure that it is the one meant: a
/// node is only a name that somebody gave to a number.
fn open_node(device: &str, path: &Path, number: u64) -> Result<File> {
    // std opens every file O_CLOEXEC.
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| Error::open(path, &error))?;
    let metadata = file.metadata().map_err(|error| Error::open(path, &error))?;
    if metadata.file_type().is_char_device() && metadata.rdev() == number {
        return Ok(file);
    }
    Err(Error::OtherNode {
        path: path.to_owned(),
        device: device.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_missing_is_an_error_that_says_so() {
        let error = open_node("rxe0", Path::new("/nonexistent/uverbs0"), 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let words = error.to_string();
        assert!(words.starts_with("open /nonexistent/uverbs0: ENOENT: the device has"));
    }

    #[test]
    fn a_node_of_another_number_is_not_taken() {
        let null = Path::new("/dev/null");
        let number = libc::makedev(1, 3);
        assert!(open_node("rxe0", null, number).is_ok());
        let error = open_node("rxe0", null, number + 1).unwrap_err();
        assert!(error.to_string().contains("not the node of rxe0"));
    }

    #[test]
    fn an_ordinary_file_is_not_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = open_node("rxe0", file.path(), 0).unwrap_err();
        assert!(matches!(error, Error::OtherNode { .. }), "{error}");
    }
}
