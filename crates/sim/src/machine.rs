//! What one kernel keeps.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{
    Ece, EventNumber, EventParam, EventResponse, PathRecord, PortSpace, Reserved, ServiceRecord,
};
use rdmacm_core::Gid;

use crate::adapter::{Adapter, Port};
use crate::address::Address;
use crate::clock::Clock;
use crate::id::{Attached, Id, State};
use crate::readiness::Readiness;
use crate::release::Release;

/// A host's kernel.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) release: Release,
    /// All files' together, as in the kernel's `ctx_table`.
    pub(crate) ids: BTreeMap<u32, Id>,
    pub(crate) files: BTreeMap<u64, OpenFile>,
    /// The last serial number given to an id or a file.
    serial: u64,
    /// The last port given to an id that left it open.
    pub(crate) last_port: u16,
}

/// An open file of the connection manager's device.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) events: VecDeque<Queued>,
    pub(crate) woken: bool,
    pub(crate) look: bool,
    readiness: Readiness,
}

/// An event that nobody has read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// The id that counts it as reported.
    pub(crate) id: u32,
    pub(crate) response: EventResponse,
}

/// What happens later to an id.
#[derive(Debug)]
pub(crate) struct Work {
    machine: usize,
    id: u32,
    serial: u64,
    outcome: Outcome,
}

/// How a question ends.
#[derive(Debug)]
pub(crate) enum Outcome {
    Address,
    Route(Result<PathRecord, Errno>),
    Services(Result<Vec<ServiceRecord>, Errno>),
}

impl Outcome {
    /// The state it finds the id in, or it is not for this id any more.
    fn awaited_in(&self) -> State {
        match self {
            Self::Address => State::AddrQuery,
            Self::Route(_) => State::RouteQuery,
            Self::Services(_) => State::AddrInfoQuery,
        }
    }
}

impl OpenFile {
    pub(crate) fn new(readiness: Readiness) -> Self {
        Self {
            events: VecDeque::new(),
            woken: false,
            look: false,
            readiness,
        }
    }

    /// To be called after every change.
    pub(crate) fn tell(&mut self) {
        let something = !self.events.is_empty() || self.woken || self.look;
        self.readiness.set(something);
    }
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

    /// What an id awaited has come.
    pub(crate) fn finish(&mut self, work: Work) {
        let Some(id) = self.ids.get_mut(&work.id) else {
            return;
        };
        // The number may be another id's by now.
        if id.serial != work.serial || id.state != work.outcome.awaited_in() {
            return;
        }
        let (event, status) = id.learn(work.outcome);
        self.post(work.id, event, status, &EventParam::ZERO);
    }
}

impl Id {
    /// The state and the event an answer leads to (`addr_handler`,
    /// `cma_query_handler`, `cma_query_ib_service_handler`).
    fn learn(&mut self, outcome: Outcome) -> (EventNumber, i32) {
        let status = |errno: Errno| -(errno as i32);
        match outcome {
            Outcome::Address => {
                self.state = State::AddrResolved;
                (EventNumber::ADDR_RESOLVED, 0)
            }
            Outcome::Route(Ok(path)) => {
                self.state = State::RouteResolved;
                self.path = Some(path);
                (EventNumber::ROUTE_RESOLVED, 0)
            }
            Outcome::Route(Err(errno)) => {
                self.state = State::AddrResolved;
                (EventNumber::ROUTE_ERROR, status(errno))
            }
            Outcome::Services(Ok(records)) => {
                self.state = State::AddrInfoResolved;
                self.aim_at(records.first());
                self.services = Some(records);
                (EventNumber::ADDRINFO_RESOLVED, 0)
            }
            Outcome::Services(Err(errno)) => {
                self.state = State::AddrBound;
                (EventNumber::ADDRINFO_ERROR, status(errno))
            }
        }
    }

    /// The first record of a service is the destination.
    fn aim_at(&mut self, record: Option<&ServiceRecord>) {
        if let Some(record) = record {
            let gid = Gid(record.gid);
            let address = Address::infiniband(gid, record.pkey.get(), record.id.get());
            self.destination = Some(Address::Ib(address));
            self.destination_gid = gid;
            self.pkey = record.pkey.get();
        }
    }
}

impl Work {
    /// Puts off what comes to an id of a machine.
    pub(crate) fn put_off(
        clock: &mut Clock,
        delay: Duration,
        (machine, number): (usize, u32),
        id: &Id,
        outcome: Outcome,
    ) {
        let work = Self {
            machine,
            id: number,
            serial: id.serial,
            outcome,
        };
        clock.put_off(delay, work);
    }

    /// The machine it concerns.
    pub(crate) fn machine(&self) -> usize {
        self.machine
    }
}
