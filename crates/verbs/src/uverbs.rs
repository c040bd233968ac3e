//! The one point where commands leave this crate.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rdmacm_abi::uverbs::{
    AllocPd, Command, CommandNumber, CreateCq, CreateCqResponse, CreateQp, CreateQpResponse, Rxe,
    Siw,
};
use zerocopy::FromZeros;

use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::operation::Operation;

mod frame;
mod kernel;

/// An open verbs node that is a context.
#[derive(Debug)]
pub(crate) struct Uverbs {
    file: File,
    driver: Driver,
    /// Where the kernel reports about the context's objects. It makes this
    /// descriptor unasked, and keeps it with the context.
    _async_events: OwnedFd,
}

impl Uverbs {
    /// Opens the node at `path`, which must have this device number, and makes
    /// it a context.
    pub(crate) fn open(device: &str, path: &Path, number: u64, driver: Driver) -> Result<Self> {
        let file = open_node(device, path, number)?;
        let command = CommandNumber::GET_CONTEXT;
        let operation = Operation::OpenContext;
        let async_events = kernel::get_context(&file, driver)
            .map_err(|error| Error::command(operation, command, &error))?
            .ok_or_else(|| Error::answer(operation, command, "a descriptor that is none"))?;
        Ok(Self {
            file,
            driver,
            _async_events: async_events,
        })
    }

    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Sends one command and gives its answer: the way down that every
    /// command of this crate takes. Nothing is allocated on it.
    pub(crate) fn ask<C: Command>(&self, operation: Operation, request: &C) -> Result<C::Response> {
        let mut response = C::Response::new_zeroed();
        kernel::transact(&self.file, request, &mut response)
            .map_err(|error| Error::command(operation, C::NUMBER, &error))?;
        Ok(response)
    }

    /// The handle of a new protection domain.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let answer = self.ask(Operation::CreateProtectionDomain, &AllocPd::default())?;
        Ok(answer.handle)
    }

    pub(crate) fn create_cq(
        &self,
        operation: Operation,
        request: CreateCq,
    ) -> Result<CreateCqResponse> {
        Ok(match self.driver {
            Driver::Rxe => self.ask(operation, &Rxe(request))?.common,
            Driver::Siw => self.ask(operation, &Siw(request))?.common,
        })
    }

    pub(crate) fn create_qp(
        &self,
        operation: Operation,
        request: CreateQp,
    ) -> Result<CreateQpResponse> {
        Ok(match self.driver {
            Driver::Rxe => self.ask(operation, &Rxe(request))?.common,
            Driver::Siw => self.ask(operation, &Siw(request))?.common,
        })
    }

    /// Destroys what nothing is made from any more. The kernel refuses it only
    /// where it would refuse everything, after a change of credentials: the
    /// object then goes with the descriptor, and there is nobody to tell.
    pub(crate) fn destroy<C: Command>(&self, request: &C) {
        let mut response = C::Response::new_zeroed();
        let _ = kernel::transact(&self.file, request, &mut response);
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
