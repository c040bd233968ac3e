//! What happens at a later time.

use std::net::IpAddr;
use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, PathRecord, ServiceRecord};
use rdmacm_core::{Gid, Transport};

use crate::address::Address;
use crate::clock::Clock;
use crate::device::{Device, ip_gid};
use crate::host_state::EventDetails;
use crate::id::{Attached, Id, IdKey, State};
use crate::network::Packet;
use crate::sim_state::SimState;
use crate::verbs::QpKey;
use crate::{cm, iwarp, multicast, verbs};

/// What happens at a later time.
#[derive(Debug)]
pub(crate) enum Timer {
    /// A resolution ends.
    Resolved { id: IdKey, outcome: Outcome },
    /// A packet arrives.
    Deliver(Packet),
    /// No answer has come to a message of InfiniBand's connection manager.
    Retransmit { id: IdKey, sequence: u64 },
    /// A connection's queue pair number may be used again.
    TimewaitExit { id: IdKey, communication_id: u32 },
    /// No answer has come on an iWARP connection.
    IwarpTimeout { id: IdKey, sequence: u64 },
    /// No reply has come to a request of a queue pair.
    DataTimeout { key: QpKey, sequence: u64 },
    /// The peer may have something to receive into.
    ReceiverReady { key: QpKey, sequence: u64 },
    /// A multicast group was joined.
    Joined { host: usize, serial: u64 },
}

/// How a resolution ends.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// That of an address of InfiniBand, or of the loopback address.
    Address,
    /// That of an IP address.
    IpAddress(Result<IpSource, Errno>),
    /// iWARP has routes without path records.
    Route(Result<Option<PathRecord>, Errno>),
    Services(Result<Vec<ServiceRecord>, Errno>),
}

/// Where a route to an IP address begins, and the peer's hardware address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpSource {
    pub(crate) address: IpAddr,
    pub(crate) device: usize,
    pub(crate) peer: Gid,
}

impl Timer {
    pub(crate) fn fire(self, state: &mut SimState) {
        match self {
            Self::Resolved { id, outcome } => finish_resolution(state, id, outcome),
            Self::Deliver(packet) => packet.deliver(state),
            Self::Retransmit { id, sequence } => cm::retransmit(state, id, sequence),
            Self::TimewaitExit {
                id,
                communication_id,
            } => cm::exit_timewait(state, id, communication_id),
            Self::IwarpTimeout { id, sequence } => iwarp::time_out(state, id, sequence),
            Self::DataTimeout { key, sequence } => verbs::time_out(state, key, sequence),
            Self::ReceiverReady { key, sequence } => verbs::receiver_ready(state, key, sequence),
            Self::Joined { host, serial } => multicast::report_join(state, host, serial),
        }
    }

    /// Schedules the end of a resolution.
    pub(crate) fn resolve(clock: &mut Clock, delay: Duration, id: IdKey, outcome: Outcome) {
        clock.schedule(delay, Self::Resolved { id, outcome });
    }
}

fn finish_resolution(state: &mut SimState, key: IdKey, outcome: Outcome) {
    let Some(id) = state.id(key) else {
        return;
    };
    if id.state != outcome.awaited_in() {
        return;
    }
    let outcome = match outcome {
        Outcome::IpAddress(Ok(source)) => {
            let attached = attach_to_source(state, key, source);
            Outcome::IpAddress(attached.map(|()| source))
        }
        other => other,
    };
    let Some(id) = state.id(key) else {
        return;
    };
    let is_destroying = id.is_destroying;
    let (event, details) = id.finish(outcome);
    if is_destroying {
        // `cma_work_handler` finds that the id has left the state.
        return;
    }
    if let Some(host) = state.hosts.get_mut(key.host) {
        host.post(key.number, event, details);
    }
}

/// `cma_acquire_dev_by_src_ip`, as part of `addr_handler`.
fn attach_to_source(state: &mut SimState, key: IdKey, source: IpSource) -> Result<(), Errno> {
    let host = state.hosts.get_mut(key.host).ok_or(Errno::ENODEV)?;
    let device = host.devices.get(source.device).ok_or(Errno::ENODEV)?;
    if !device.has_address(source.address) {
        return Err(Errno::ENODEV);
    }
    let id = host.ids.get_mut(&key.number).ok_or(Errno::ENODEV)?;
    id.source = id.source.map(|own| own.with_ip(source.address));
    id.attach_ip(device, source.device, source.address);
    id.destination_gid = match device.transport {
        Transport::IWarp => source.peer,
        _ => id.destination_ip().map_or(Gid::UNSPECIFIED, ip_gid),
    };
    Ok(())
}

impl Outcome {
    /// The state of an id that waits for it.
    fn awaited_in(&self) -> State {
        match self {
            Self::Address | Self::IpAddress(_) => State::AddrQuery,
            Self::Route(_) => State::RouteQuery,
            Self::Services(_) => State::AddrInfoQuery,
        }
    }
}

impl Id {
    /// Attaches the id to the device that has its IP address.
    pub(crate) fn attach_ip(&mut self, device: &Device, index: usize, address: IpAddr) {
        self.attached = Some(Attached {
            device: index,
            port: 1,
        });
        self.source_gid = match device.transport {
            Transport::IWarp => device.mac_gid(),
            _ => ip_gid(address),
        };
    }

    /// The event of a resolution's end, after which the id is in the state that
    /// follows (`addr_handler`, `cma_query_handler`,
    /// `cma_query_ib_service_handler`).
    fn finish(&mut self, outcome: Outcome) -> (EventNumber, EventDetails) {
        let (state, event, errno) = match outcome {
            Outcome::Address | Outcome::IpAddress(Ok(_)) => {
                (State::AddrResolved, EventNumber::ADDR_RESOLVED, None)
            }
            Outcome::IpAddress(Err(errno)) => {
                (State::AddrBound, EventNumber::ADDR_ERROR, Some(errno))
            }
            Outcome::Route(Ok(path)) => {
                self.path = path;
                (State::RouteResolved, EventNumber::ROUTE_RESOLVED, None)
            }
            Outcome::Route(Err(errno)) => {
                (State::AddrResolved, EventNumber::ROUTE_ERROR, Some(errno))
            }
            Outcome::Services(Ok(records)) => {
                self.set_destination(records.first());
                self.services = Some(records);
                (
                    State::AddrInfoResolved,
                    EventNumber::ADDRINFO_RESOLVED,
                    None,
                )
            }
            Outcome::Services(Err(errno)) => {
                (State::AddrBound, EventNumber::ADDRINFO_ERROR, Some(errno))
            }
        };
        self.state = state;
        let details = errno.map_or(EventDetails::NONE, EventDetails::with_errno);
        (event, details)
    }

    /// The first record of a service becomes the destination.
    fn set_destination(&mut self, record: Option<&ServiceRecord>) {
        if let Some(record) = record {
            let gid = Gid(record.gid);
            let address = Address::infiniband(gid, record.pkey.get(), record.id.get());
            self.destination = Some(Address::Ib(address));
            self.destination_gid = gid;
            self.pkey = record.pkey.get();
        }
    }
}
