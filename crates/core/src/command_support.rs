//! Which of the newer commands the kernel supports.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rdmacm_abi::{
    CommandNumber, EventNumber, IbService, NoResponse, ResolveIbService, WriteCmEvent,
};

use crate::error::{Error, Result};
use crate::ucma::{Attachment, NO_ID, UcmaFile, transact};

const NOT_PROBED: u8 = 0;
const SUPPORTED: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// Whether the kernel supports each of its newer commands, found by probing once. They
/// were added one by one, so each is probed by itself. The kernel's version is no
/// indication, because distributions backport commands.
#[derive(Debug, Default)]
pub(crate) struct CommandSupport {
    resolve_ib_service: AtomicU8,
    write_cm_event: AtomicU8,
}

impl CommandSupport {
    /// Runs a command. The kernel answers `EINVAL` to command numbers beyond its
    /// table, so after an `EINVAL` this probes, once for each channel, whether the
    /// kernel has the command.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it has not; those of the command.
    pub(crate) fn run<T>(
        &self,
        ucma: &dyn UcmaFile,
        number: CommandNumber,
        command: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match command() {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                if self.supports(ucma, number) {
                    Err(error)
                } else {
                    Err(Error::unsupported(number))
                }
            }
            answer => answer,
        }
    }

    fn supports(&self, ucma: &dyn UcmaFile, number: CommandNumber) -> bool {
        let (answer, probe): (_, fn(&dyn UcmaFile) -> io::Result<()>) = match number {
            CommandNumber::RESOLVE_IB_SERVICE => (&self.resolve_ib_service, resolve_ib_service),
            CommandNumber::WRITE_CM_EVENT => (&self.write_cm_event, write_cm_event),
            // In every kernel that this crate supports.
            _ => return true,
        };
        if answer.load(Ordering::Relaxed) == NOT_PROBED {
            let supported = !is_invalid(&probe(ucma));
            answer.store(
                if supported { SUPPORTED } else { UNSUPPORTED },
                Ordering::Relaxed,
            );
        }
        answer.load(Ordering::Relaxed) == SUPPORTED
    }
}

/// A command about an id that cannot exist fails with `ENOENT` if the kernel has the
/// command, and with `EINVAL` if its number is beyond the table.
fn is_invalid(answer: &io::Result<()>) -> bool {
    matches!(answer, Err(error) if error.raw_os_error() == Some(libc::EINVAL))
}

fn resolve_ib_service(ucma: &dyn UcmaFile) -> io::Result<()> {
    let probe = ResolveIbService::new(NO_ID, IbService::with_id(1));
    transact(ucma, &probe, &mut NoResponse, Attachment::None)
}

/// The kernel checks the event's number before it looks for the id.
fn write_cm_event(ucma: &dyn UcmaFile) -> io::Result<()> {
    let probe = WriteCmEvent::new(NO_ID, EventNumber::USER, 0, 0);
    transact(ucma, &probe, &mut NoResponse, Attachment::None)
}
