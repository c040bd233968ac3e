//! The connection manager of iWARP, as the kernel's `iwcm.c` and the driver siw have
//! it.

use std::net::IpAddr;
use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::EventNumber;

use crate::address::Address;
use crate::device::ip_gid;
use crate::host_state::EventDetails;
use crate::id::{CmObject, Id, IdKey, State};
use crate::network::{Packet, Payload};
use crate::sim_state::SimState;
use crate::timer::Timer;
use crate::verbs::{self, QpKey};

mod attributes;
mod connect;
mod disconnect;
mod listener;
mod message;
mod receive;

pub(crate) use attributes::qp_attr;
pub(crate) use connect::{abandon_handshake, accept, connect, reject, take_handshake_result};
pub(crate) use disconnect::{destroy, disconnect, end_connection_of, is_pending};
pub(crate) use listener::check_listen;
pub(crate) use message::IwMessage;
pub(crate) use receive::receive;

/// How long TCP waits for the answer to its first segment; each time it is sent again, twice as
/// long (`TCP_TIMEOUT_INIT`).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);

/// How often it is sent again (`TCP_SYN_RETRIES`), so that CONNECT fails after 127 s.
const SYN_RETRIES: u32 = 6;

/// How long the peer may take to answer MPA's request, `MPAREQ_TIMEOUT`.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The most reads that siw serves or issues at once, `SIW_MAX_IRD_QP`.
const MAX_DEPTH: u8 = 128;

/// The most private data that siw sends whole.
const MAX_DATA: usize = 251;

/// The states of a connection, `iw_cm_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IwState {
    Idle,
    /// TCP's handshake, during which CONNECT blocks.
    Handshake,
    ConnectSent,
    ConnectReceived,
    Established,
    Closing,
}

/// A connection, `iwcm_id_private` and siw's endpoint.
#[derive(Clone, Debug)]
pub(crate) struct IwConnection {
    pub(crate) state: IwState,
    /// Its number on the fabric.
    pub(crate) local: u32,
    /// That of the other end; 0 while it is unknown.
    pub(crate) remote: u32,
    pub(crate) source: IpAddr,
    pub(crate) peer: IpAddr,
    /// Incoming and outgoing reads.
    pub(crate) depths: ReadDepths,
    pub(crate) private_data: Vec<u8>,
    /// The queue pair here, once the program has named it.
    pub(crate) queue_pair: Option<QpKey>,
    /// The number of the peer's queue pair.
    pub(crate) peer_qp_number: u32,
    /// How often TCP's first segment was sent again.
    pub(crate) syn_retries: u32,
    /// How the handshake has ended.
    pub(crate) handshake_result: Option<Result<(), Errno>>,
    /// Whether the peer has closed a connection that is not accepted yet.
    pub(crate) is_peer_closed: bool,
    /// That of the timer that ends the wait for an answer.
    pub(crate) timeout: u64,
}

/// How many reads a side serves and issues at once (IRD and ORD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadDepths {
    pub(crate) inbound: u8,
    pub(crate) outbound: u8,
}

impl ReadDepths {
    /// Those of the other side.
    fn swapped(self) -> Self {
        Self {
            inbound: self.outbound,
            outbound: self.inbound,
        }
    }
}

impl IwConnection {
    fn new(state: IwState, local: u32, (source, peer): (IpAddr, IpAddr)) -> Self {
        Self {
            state,
            local,
            remote: 0,
            source,
            peer,
            depths: ReadDepths {
                inbound: 0,
                outbound: 0,
            },
            private_data: Vec::new(),
            queue_pair: None,
            peer_qp_number: 0,
            syn_retries: 0,
            handshake_result: None,
            is_peer_closed: false,
            timeout: 0,
        }
    }
}

/// Sends a segment of a connection.
fn send(state: &mut SimState, key: IdKey, message: IwMessage) {
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    Packet {
        host: key.host,
        source: ip_gid(connection.source),
        destination: ip_gid(connection.peer),
        payload: Payload::Iw(message),
    }
    .send(state);
}

/// Limits the wait for an answer.
fn set_timeout(state: &mut SimState, key: IdKey, timeout: Duration) {
    let sequence = state.clock.next_sequence();
    if let Some(connection) = state.id(key).and_then(Id::iw) {
        connection.timeout = sequence;
        let timer = Timer::IwarpTimeout { id: key, sequence };
        state.clock.schedule(timeout, timer);
    }
}

/// No answer has come in time.
pub(crate) fn time_out(state: &mut SimState, key: IdKey, sequence: u64) {
    let Some(connection) = state.id(key).and_then(Id::iw) else {
        return;
    };
    if connection.timeout != sequence {
        return;
    }
    match connection.state {
        IwState::Handshake if connection.syn_retries < SYN_RETRIES => {
            connection.syn_retries += 1;
            connect::send_syn(state, key);
        }
        IwState::Handshake => {
            connection.state = IwState::Idle;
            connection.handshake_result = Some(Err(Errno::ETIMEDOUT));
        }
        IwState::ConnectSent => {
            connection.state = IwState::Idle;
            let to = connection.remote;
            send(state, key, IwMessage::Fin { to });
            fail_queue_pair(state, key);
            let details = EventDetails::with_errno(Errno::ETIMEDOUT);
            report(state, key, EventNumber::UNREACHABLE, details);
        }
        _ => {}
    }
}

/// Queues an event of an id that is connected or about to be (`cma_iw_handler`).
fn report(state: &mut SimState, key: IdKey, event: EventNumber, details: EventDetails) {
    if state.id(key).is_some_and(|id| id.state == State::Connect) {
        state.post(key, event, details);
    }
}

/// Gives the id a connection, which its number finds.
fn set_connection(state: &mut SimState, key: IdKey, connection: IwConnection) {
    let Some(host) = state.hosts.get_mut(key.host) else {
        return;
    };
    host.connections.insert(connection.local, key.number);
    if let Some(id) = host.ids.get_mut(&key.number) {
        id.cm = CmObject::Iw(Box::new(connection));
    }
}

/// The queue pair that the program has named (`iw_get_qp`).
fn find_queue_pair(state: &mut SimState, key: IdKey) -> Result<QpKey, Errno> {
    let id = state.id(key).ok_or(Errno::EINVAL)?;
    let attached = id.attached.ok_or(Errno::EINVAL)?;
    let queue_pair = QpKey {
        host: key.host,
        device: attached.device,
        number: id.qp_number,
    };
    let exists = state.has_siw_queue_pair(queue_pair);
    exists.then_some(queue_pair).ok_or(Errno::EINVAL)
}

/// The connection is established: its queue pair may send and receive.
fn start_queue_pair(state: &mut SimState, key: IdKey) {
    let connection = state.id(key).and_then(Id::iw).map(|one| one.clone());
    let Some(connection) = connection else {
        return;
    };
    if let Some(queue_pair) = connection.queue_pair {
        verbs::connect(state, queue_pair, &connection);
    }
}

/// The connection has failed or ended, and its queue pair cannot be used again.
fn fail_queue_pair(state: &mut SimState, key: IdKey) {
    let connection = state.id(key).and_then(Id::iw);
    let queue_pair = connection.and_then(|connection| connection.queue_pair);
    if let Some(queue_pair) = queue_pair {
        verbs::fail(state, queue_pair);
    }
}

/// The id of a connection by its number.
fn find(state: &mut SimState, host: usize, local: u32) -> Option<(IdKey, &mut IwConnection)> {
    let host_state = state.hosts.get_mut(host)?;
    let number = *host_state.connections.get(&local)?;
    let id = host_state.ids.get_mut(&number)?;
    let key = IdKey {
        host,
        number,
        serial: id.serial,
    };
    Some((key, id.iw()?))
}

/// The IP addresses at both ends of an id.
fn ends(id: &Id) -> Option<(Address, Address)> {
    Some((id.source?, id.destination?))
}
