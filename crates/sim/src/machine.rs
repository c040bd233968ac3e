//! What one kernel keeps.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rdmacm_abi::{Ece, EventNumber, EventParam, EventResponse, PortSpace, Reserved};

use crate::adapter::{Adapter, Port};
use crate::address::Address;
use crate::id::{Attached, Id};
use crate::inbox::{Inbox, Queued};
use crate::release::Release;

/// A host's kernel.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) release: Release,
    /// All files' together, as in the kernel's `ctx_table`.
    pub(crate) ids: BTreeMap<u32, Id>,
    /// What each open file has to tell.
    pub(crate) files: BTreeMap<u64, Inbox>,
    /// The last serial number given to an id or a file.
    serial: u64,
    /// The last port given to an id that left it open.
    pub(crate) last_port: u16,
}

impl Machine {
    pub(crate) fn new(adapters: Vec<Adapter>) -> Self {
        Self {
            adapters,
            release: Release::default(),
            ids: BTreeMap::new(),
            files: BTreeMap::new(),
            serial: 0,
            last_port: 0,
        }
    }

    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The ports of all adapters.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (Attached, &Port)> {
        self.adapters.iter().enumerate().flat_map(|(adapter, of)| {
            of.numbered()
                .map(move |(port, of)| (Attached { adapter, port }, of))
        })
    }

    /// An id of a file: `ENOENT` where there is none, `EINVAL` where it is another
    /// file's (`_ucma_find_context`).
    pub(crate) fn find(&mut self, file: u64, id: u32) -> Result<&mut Id, Errno> {
        let id = self.ids.get_mut(&id).ok_or(Errno::ENOENT)?;
        if id.file == file {
            Ok(id)
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// An id that is attached to a device (`ucma_get_ctx_dev`).
    pub(crate) fn find_attached(&mut self, file: u64, id: u32) -> Result<&mut Id, Errno> {
        let id = self.find(file, id)?;
        if id.attached.is_some() {
            Ok(id)
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// Queues an event, but none to an id without a uid (`ucma_event_handler`).
    pub(crate) fn post(
        &mut self,
        number: u32,
        event: EventNumber,
        status: i32,
        param: &EventParam,
    ) {
        let Some(id) = self.ids.get(&number).filter(|id| id.uid != 0) else {
            return;
        };
        let Some(file) = self.files.get_mut(&id.file) else {
            return;
        };
        file.events.push_back(Queued {
            id: number,
            response: EventResponse {
                uid: id.uid,
                id: number,
                event,
                raw_status: u32::from_ne_bytes(status.to_ne_bytes()),
                param: *param,
                reserved: Reserved::ZERO,
                ece: Ece {
                    vendor_id: 0,
                    options: 0,
                },
            },
        });
        file.tell();
    }

    /// Ends an id and what is queued for it; how many of its events were read.
    pub(crate) fn destroy(&mut self, number: u32) -> u32 {
        let Some(id) = self.ids.remove(&number) else {
            return 0;
        };
        if let Some(file) = self.files.get_mut(&id.file) {
            file.events.retain(|queued| queued.id != number);
            file.tell();
        }
        id.events_reported
    }

    /// Closes a file and what was made on it.
    pub(crate) fn close(&mut self, file: u64) {
        self.files.remove(&file);
        self.ids.retain(|_, id| id.file != file);
    }

    /// Whether a port of a port space is free for an address (`cma_check_port`).
    pub(crate) fn check_port(
        &self,
        number: u32,
        bound: (PortSpace, u16),
        address: &Address,
    ) -> Result<(), Errno> {
        let others = self
            .ids
            .iter()
            .filter(|(other, id)| **other != number && id.bound == Some(bound));
        for other in others.filter_map(|(_, id)| id.source) {
            if address.is_any() || other.is_any() {
                return Err(Errno::EADDRNOTAVAIL);
            }
            if address.is_same_host(&other) {
                return Err(Errno::EADDRINUSE);
            }
        }
        Ok(())
    }
}
