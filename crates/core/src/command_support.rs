//! Which of the newer commands this kernel knows.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rdmacm_abi::{
    CommandNumber, EventNumber, IbService, NoResponse, ResolveIbService, WriteCmEvent,
};

use crate::address_abi::NO_ID;
use crate::error::{Error, Result};
use crate::ucma::{Attachment, UcmaFile, transact};

const UNASKED: u8 = 0;
const KNOWN: u8 = 1;
const UNKNOWN: u8 = 2;

/// The kernel's newer commands, each found known or not by asking once. They
/// came one by one, so each is asked about by itself, and never by version:
/// distributions carry them back.
#[derive(Debug, Default)]
pub(crate) struct CommandSupport {
    resolve_ib_service: AtomicU8,
    write_cm_event: AtomicU8,
}

impl CommandSupport {
    /// Runs a command. An `EINVAL` may mean that the kernel does not know it
    /// (its answer to every number beyond its table): then, once in a channel's
    /// life, it is asked.
    pub(crate) fn run<T>(
        &self,
        ucma: &dyn UcmaFile,
        number: CommandNumber,
        command: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match command() {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                if self.knows(ucma, number) {
                    Err(error)
                } else {
                    Err(Error::unsupported(number))
                }
            }
            answer => answer,
        }
    }

    fn knows(&self, ucma: &dyn UcmaFile, number: CommandNumber) -> bool {
        let (answer, probe): (_, fn(&dyn UcmaFile) -> io::Result<()>) = match number {
            CommandNumber::RESOLVE_IB_SERVICE => (&self.resolve_ib_service, resolve_ib_service),
            CommandNumber::WRITE_CM_EVENT => (&self.write_cm_event, write_cm_event),
            // In every kernel this crate works on.
            _ => return true,
        };
        if answer.load(Ordering::Relaxed) == UNASKED {
            let known = !is_invalid(&probe(ucma));
            answer.store(if known { KNOWN } else { UNKNOWN }, Ordering::Relaxed);
        }
        answer.load(Ordering::Relaxed) == KNOWN
    }
}

/// A command about an id that cannot exist answers `ENOENT` where the kernel
/// knows the command and `EINVAL` where the number is beyond its table.
fn is_invalid(answer: &io::Result<()>) -> bool {
    matches!(answer, Err(error) if error.raw_os_error() == Some(libc::EINVAL))
}

fn resolve_ib_service(ucma: &dyn UcmaFile) -> io::Result<()> {
    let probe = ResolveIbService::new(NO_ID, IbService::with_id(1));
    transact(ucma, &probe, &mut NoResponse, Attachment::None)
}

/// The kernel looks at the event's number before it looks for the id.
fn write_cm_event(ucma: &dyn UcmaFile) -> io::Result<()> {
    let probe = WriteCmEvent::new(NO_ID, EventNumber::USER, 0, 0);
    transact(ucma, &probe, &mut NoResponse, Attachment::None)
}
