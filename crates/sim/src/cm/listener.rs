//! Which listener a request is for, and the id it creates.

use std::net::IpAddr;

use nix::errno::Errno;
use rdmacm_abi::{EventNumber, PathRecord, QpType};
use rdmacm_core::{Gid, Transport};

use super::message::Req;
use crate::address::Address;
use crate::device::gid_ip;
use crate::event_queue::QueuedEvent;
use crate::host_state::{EventDetails, HostState};
use crate::id::{Id, IdKey, State};
use crate::network::Arrival;
use crate::sim_state::SimState;

/// Why no listener takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoListener {
    /// None has the service id.
    Absent,
    /// One has it, but not for this address or type of queue pair.
    Mismatch,
    /// It has as many unread requests as it allows.
    Full,
}

/// What a request says of the service it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) id: u64,
    pub(super) qp_type: QpType,
    pub(super) addresses: Option<(Address, Address)>,
}

impl Service {
    pub(super) fn of(req: &Req) -> Self {
        Self {
            id: req.service_id,
            qp_type: req.qp_type,
            addresses: req.addresses,
        }
    }
}

/// `cm_find_listen` and `cma_ib_id_from_event`.
pub(super) fn find(
    host: &HostState,
    arrival: Arrival,
    service: Service,
) -> Result<u32, NoListener> {
    let listens = |id: &Id| {
        let on_device = |attached: crate::id::Attached| attached.device == arrival.attached.device;
        id.state == State::Listen
            && id.attached.is_none_or(on_device)
            && id.service_id(id.source) == service.id
    };
    let mut listeners = host.ids.iter().filter(|(_, id)| listens(id)).peekable();
    listeners.peek().ok_or(NoListener::Absent)?;
    let (number, id) = listeners
        .find(|(_, id)| takes(id, service.addresses))
        .ok_or(NoListener::Mismatch)?;
    // An id of no type takes any.
    if ![QpType::new(0), service.qp_type].contains(&id.qp_type) {
        return Err(NoListener::Mismatch);
    }
    if id.backlog == 0 {
        return Err(NoListener::Full);
    }
    Ok(*number)
}

/// Whether a listener takes requests for an address (`cma_match_private_data`,
/// `cma_save_net_info`).
fn takes(id: &Id, addresses: Option<(Address, Address)>) -> bool {
    let Some(own) = id.source else {
        return false;
    };
    match (own, addresses) {
        (Address::Ib(_), _) => true,
        (_, None) => false,
        (own, Some((_, destination))) => {
            let is_any = own.is_any();
            is_any && !id.options.af_only
                || own.family() == destination.family()
                    && (is_any || own.is_same_host(&destination))
        }
    }
}

/// The id that a request creates (`cma_ib_new_conn_id`, `cma_ib_new_udp_id`); its
/// connection is still missing. The path is that of the request, reversed.
pub(super) fn create_child(
    state: &mut SimState,
    arrival: Arrival,
    listener: u32,
    service: Service,
    path: Option<PathRecord>,
) -> Result<IdKey, Errno> {
    let psn = state.random.sequence_number();
    let host = state.hosts.get_mut(arrival.host).ok_or(Errno::ENOMEM)?;
    let serial = host.next_serial();
    let parent = host.ids.get_mut(&listener).ok_or(Errno::ENOMEM)?;
    parent.backlog = parent.backlog.saturating_sub(1);
    let mut child = Id::new(serial, 0, parent.file, (parent.port_space, service.qp_type));
    (child.source, child.destination) = child_addresses(parent, arrival, service.addresses);
    // Without the listener's options.
    child.state = State::Connect;
    child.attached = Some(arrival.attached);
    child.source_gid = arrival.destination;
    child.destination_gid = arrival.source;
    if arrival.transport == Transport::InfiniBand {
        child.pkey = path.map_or(0, |path| path.pkey.get());
    }
    child.psn = psn;
    child.path = path;
    host.add(arrival.host, child)
}

/// `cma_save_net_info`.
fn child_addresses(
    listener: &Id,
    arrival: Arrival,
    addresses: Option<(Address, Address)>,
) -> (Option<Address>, Option<Address>) {
    match (listener.source, addresses) {
        (Some(Address::Ib(own)), _) => {
            let service_id = own.service_id.get();
            let end = |gid: Gid, service_id| {
                Some(Address::Ib(Address::infiniband(
                    gid,
                    own.pkey.get(),
                    service_id,
                )))
            };
            (end(arrival.destination, service_id), end(arrival.source, 0))
        }
        (own, Some((source, mut destination))) => {
            destination.set_port(own.map_or(0, |own| own.port()));
            (Some(destination), Some(source))
        }
        (_, None) => {
            let end = |address: IpAddr| Some(Address::from_ip(address, 0));
            (
                end(gid_ip(arrival.destination)),
                end(gid_ip(arrival.source)),
            )
        }
    }
}

/// Queues a connect request for the listener (`ucma_connect_event_handler`).
pub(crate) fn report(state: &mut SimState, listener: u32, child: IdKey, details: EventDetails) {
    let Some(host) = state.hosts.get_mut(child.host) else {
        return;
    };
    let Some(id) = host.ids.get(&listener) else {
        return;
    };
    let event = EventNumber::CONNECT_REQUEST;
    let queued = QueuedEvent {
        id: listener,
        group: None,
        child: Some(child.number),
        response: details.into_response(id.uid, child.number, event),
    };
    if let Some(file) = host.files.get_mut(&id.file) {
        file.push(queued);
    }
}
