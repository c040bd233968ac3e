//! The one point where commands leave this crate.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rdmacm_abi::uverbs::{AllocPd, Command, CommandNumber, CreateCompletionChannel};
use zerocopy::FromZeros;

use crate::closable::Closable;
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mapping::Mapping;
use crate::operation::Operation;
use crate::provider::Provider;

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
    provider: Arc<dyn Provider>,
    file: Closable,
    /// Where the kernel reports about the context's objects. It makes this
    /// descriptor unasked.
    async_events: OnceLock<Arc<Closable>>,
    ended: AtomicBool,
    ending: OnceLock<Ending>,
    given: Mutex<Given>,
}

/// What the driver has given out and is to get back when this ends.
#[derive(Debug, Default)]
struct Given {
    channels: Vec<Weak<Closable>>,
    mappings: Vec<Weak<Mapping>>,
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
            provider,
            file: Closable::new(open_node(device, path, number)?),
            async_events: OnceLock::new(),
            ended: AtomicBool::new(false),
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
        let mut response = C::Response::new_zeroed();
        let answered = self
            .file
            .with(|file| kernel::transact(file, request, &mut response));
        match answered {
            Some(Ok(())) => Ok(response),
            Some(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                // The kernel has disconnected the file from the device.
                self.close();
                Err(self.gone())
            }
            Some(Err(error)) => Err(Error::command(operation, C::NUMBER, &error)),
            None => Err(self.gone()),
        }
    }

    /// Maps memory of the driver's, by the offset it told.
    ///
    /// # Errors
    /// [`Error::Map`] when the kernel refuses, [`Error::Gone`] when the device has
    /// gone.
    pub fn map(&self, offset: u64, length: usize) -> Result<Arc<Mapping>> {
        let mapped = self.file.with(|file| Mapping::new(file, offset, length));
        let mapping = mapped
            .ok_or_else(|| self.gone())?
            .map_err(|error| Error::map(&error))?;
        let mapping = Arc::new(mapping);
        let mut given = self.given();
        given.mappings.retain(|one| one.strong_count() > 0);
        given.mappings.push(Arc::downgrade(&mapping));
        drop(given);
        // Closing may have passed this one by.
        if self.is_gone() {
            let _ = mapping.detach();
        }
        Ok(mapping)
    }

    /// The handle of a new protection domain.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let answer = self.ask(Operation::CreateProtectionDomain, &AllocPd::default())?;
        Ok(answer.handle)
    }

    /// The descriptor of a new completion channel.
    pub(crate) fn create_completion_channel(&self) -> Result<Arc<Closable>> {
        let operation = Operation::CreateCompletionChannel;
        let answer = self.ask(operation, &CreateCompletionChannel::default())?;
        let command = CommandNumber::CREATE_COMP_CHANNEL;
        self.take_over(operation, command, answer.fd)
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
        drop(given);
        if self.is_gone() {
            file.close();
        }
        Ok(file)
    }

    /// Destroys what nothing is made from any more; whether the device knows of it
    /// no longer. The kernel refuses only where it would refuse everything, after
    /// a change of credentials: the object then goes with the descriptor.
    pub(crate) fn destroy<C: Command>(&self, request: &C) -> bool {
        let mut response = C::Response::new_zeroed();
        let destroyed = self
            .file
            .with(|file| kernel::transact(file, request, &mut response));
        match destroyed {
            None | Some(Ok(())) => true,
            // What a device had goes with it.
            Some(Err(error)) => error.raw_os_error() == Some(libc::EIO),
        }
    }

    /// Destroys what was just made and could not be completed.
    pub fn undo<C: Command>(&self, request: &C) {
        self.destroy(request);
    }

    /// Ends the context under those who use it, once commands that are under way
    /// are back: the driver is rid of its descriptors and its memory. From
    /// then on the device touches nothing of this process.
    pub(crate) fn close(&self) {
        self.ended.store(true, Ordering::Release);
        let (channels, mappings) = {
            let mut given = self.given();
            (
                std::mem::take(&mut given.channels),
                std::mem::take(&mut given.mappings),
            )
        };
        self.file.close();
        for channel in channels.iter().filter_map(Weak::upgrade) {
            channel.close();
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

    pub(crate) fn is_gone(&self) -> bool {
        self.ended.load(Ordering::Acquire)
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
        if self.is_gone() {
            ending.set();
        }
        Ok(ending)
    }

    /// Closes if the kernel has announced that the device goes.
    pub(crate) fn heed_removal(&self) {
        let removals = self.ending.get().and_then(Ending::removals);
        if removals.is_some_and(|removals| removals.tell_of(self.number)) {
            self.close();
        }
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
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
