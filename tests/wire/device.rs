//! The connection manager's device file.

use std::io;

use rdmacm_abi::{Command, EventResponse, GetEvent, NoResponse};
use rdmacm_core::ucma::{Attachment, KernelFile, UcmaFile as _, transact};
use rdmacm_init::CmEvent;
use zerocopy::FromZeros;

/// An open file with all ids.
#[derive(Debug)]
pub(crate) struct Device(KernelFile);

impl Device {
    pub(crate) fn open() -> Self {
        Self(KernelFile::open().unwrap())
    }

    /// Sends a command that has a response.
    pub(crate) fn execute_with_response<C>(&self, request: &C) -> io::Result<C::Response>
    where
        C: Command,
        C::Response: FromZeros,
    {
        let mut response = C::Response::new_zeroed();
        transact(&self.0, request, &mut response, Attachment::None)?;
        Ok(response)
    }

    /// Sends a command that has no response.
    pub(crate) fn execute<C: Command<Response = NoResponse>>(&self, request: &C) -> io::Result<()> {
        transact(&self.0, request, &mut NoResponse, Attachment::None)
    }

    /// Waits until an event may be pending.
    pub(crate) fn wait(&self) {
        self.0.wait(None, None).unwrap();
    }

    /// Takes the next event, if one is pending.
    pub(crate) fn next_event(&self) -> Option<CmEvent> {
        match self.execute_with_response(&GetEvent::new()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            event => Some(cm_event(&event.unwrap())),
        }
    }
}

fn cm_event(event: &EventResponse) -> CmEvent {
    let data = event.param.conn().private_data();
    let data = String::from_utf8_lossy(data);
    CmEvent {
        uid: event.uid,
        id: event.id,
        kind: event.event.number(),
        status: event.status(),
        data: data.trim_end_matches('\0').to_owned(),
    }
}
