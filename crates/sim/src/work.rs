//! What happens later.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, EventParam, PathRecord, ServiceRecord};
use rdmacm_core::Gid;

use crate::address::Address;
use crate::clock::Clock;
use crate::id::{Id, State};
use crate::machine::Machine;

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

    /// What an id awaited has come.
    pub(crate) fn carry_out(self, machine: &mut Machine) {
        let Some(id) = machine.ids.get_mut(&self.id) else {
            return;
        };
        // The number may be another id's by now.
        if id.serial != self.serial || id.state != self.outcome.awaited_in() {
            return;
        }
        let (event, status) = id.learn(self.outcome);
        machine.post(self.id, event, status, &EventParam::ZERO);
    }
}
