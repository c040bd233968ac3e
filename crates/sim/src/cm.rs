//! The connection manager of InfiniBand and RoCE, as the kernel's `cm.c` has it.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{AhAttr, EventNumber, PathMtu, PathRecord, QpType};
use rdmacm_core::{Gid, Guid};

use crate::host_state::EventDetails;
use crate::id::{Id, IdKey, State};
use crate::network::{Packet, Payload};
use crate::sim_state::SimState;
use crate::timer::Timer;

mod accept;
mod attributes;
mod connect;
mod disconnect;
mod event;
mod listener;
mod message;
mod receive;
mod reject;
mod sidr;

pub(crate) use accept::{accept, confirm, establish};
pub(crate) use attributes::qp_attr;
pub(crate) use connect::connect;
pub(crate) use disconnect::{destroy, disconnect, exit_timewait};
pub(crate) use event::ud_param;
pub(crate) use listener::report as report_request;
pub(crate) use message::CmMessage;
pub(crate) use receive::receive;
pub(crate) use reject::reject;
pub(crate) use sidr::{accept_service, connect_service, reject_service};

/// How often a message is sent again, `CMA_MAX_CM_RETRIES`.
const RETRIES: u32 = 15;

/// How long a peer may take to answer, `CMA_CM_RESPONSE_TIMEOUT`: 2^(20 - 8) ms.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(1 << 12);

/// How long a peer may take that has acknowledged a message, besides the time for the answer to
/// arrive, `CM_MRA_SETTING`: 2^(24 - 8) ms.
const ACKNOWLEDGED_TIMEOUT: Duration = Duration::from_millis(1 << 16);

/// The states of a connection, `ib_cm_state`. Those after an acknowledgment (MRA)
/// are the ones before it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IbState {
    Idle,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    DreqReceived,
    Timewait,
    SidrReqSent,
    SidrReqReceived,
}

/// A connection, `cm_id_private`.
#[derive(Debug)]
pub(crate) struct IbConnection {
    pub(crate) state: IbState,
    /// The communication id of this side.
    pub(crate) local: u32,
    /// That of the peer; 0 while it is unknown.
    pub(crate) remote: u32,
    /// The addresses at both ends.
    pub(crate) source: Gid,
    pub(crate) peer: Gid,
    pub(crate) peer_guid: Guid,
    pub(crate) peer_qp_number: u32,
    pub(crate) qp_type: QpType,
    /// The packet sequence number that the peer expects first.
    pub(crate) sq_psn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) path_mtu: PathMtu,
    /// The queue pair's timeout, as 4.096 us * 2^n.
    pub(crate) ack_timeout: u8,
    /// How the queue pair finds the peer.
    pub(crate) address_handle: AhAttr,
    /// How long the peer may take to answer.
    pub(crate) response_timeout: Duration,
    /// The message that waits for an answer.
    pub(crate) unanswered: Option<Unanswered>,
}

/// The timeout of a queue pair, as 4.096 us * 2^n: the larger of the acknowledgment's delay and
/// of twice the path's life time, rounded up if the other is close (`cm_ack_timeout`).
fn ack_timeout(ack_delay: u8, packet_life_time: u8) -> u8 {
    let round_trip = packet_life_time + 1;
    let timeout = if round_trip >= ack_delay {
        round_trip + u8::from(ack_delay + 1 >= round_trip)
    } else {
        ack_delay + u8::from(round_trip + 1 >= ack_delay)
    };
    timeout.min(31)
}

/// A message that waits for an answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    message: CmMessage,
    retries: u32,
    timeout: Duration,
    /// That of the timer that ends the wait.
    sequence: u64,
    /// Whether the peer has acknowledged it (`IB_CM_MRA_REQ_RCVD`, `IB_CM_MRA_REP_RCVD`).
    is_acknowledged: bool,
}

impl IbConnection {
    fn new(state: IbState, local: u32, (source, peer): (Gid, Gid), path: &PathRecord) -> Self {
        Self {
            state,
            local,
            remote: 0,
            source,
            peer,
            peer_guid: Guid(0),
            peer_qp_number: 0,
            qp_type: QpType::RC,
            sq_psn: 0,
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            path_mtu: PathMtu::new(path.mtu().into()),
            ack_timeout: path.packet_life_time() + 1,
            address_handle: AhAttr::default(),
            response_timeout: RESPONSE_TIMEOUT,
            unanswered: None,
        }
    }

    /// Whether it is that of the peer's connection of this communication id. One that has ended
    /// is forgotten (`cm_remove_remote`).
    fn is_of(&self, remote: u32) -> bool {
        let has_ended = matches!(self.state, IbState::Idle | IbState::Timewait);
        self.remote == remote && !has_ended
    }

    /// The time that 4.096 us * 2^n is, as the kernel rounds it
    /// (`cm_convert_to_ms`).
    fn milliseconds(exponent: u8) -> Duration {
        Duration::from_millis(1 << exponent.saturating_sub(8).min(31))
    }

    /// How long the number of its queue pair stays in use.
    fn timewait(&self) -> Duration {
        Self::milliseconds(self.ack_timeout)
    }
}

impl SimState {
    /// The id of a connection by its communication id.
    fn connection(&mut self, host: usize, local: u32) -> Option<(IdKey, &mut Id)> {
        let host_state = self.hosts.get_mut(host)?;
        let number = *host_state.connections.get(&local)?;
        let id = host_state.ids.get_mut(&number)?;
        let key = IdKey {
            host,
            number,
            serial: id.serial,
        };
        Some((key, id))
    }

    /// Queues an event of an id.
    pub(crate) fn post(&mut self, key: IdKey, event: EventNumber, details: EventDetails) {
        if let Some(host) = self.hosts.get_mut(key.host) {
            host.post(key.number, event, details);
        }
    }

    /// Gives the id a connection, which its communication id finds.
    fn set_connection(&mut self, key: IdKey, connection: IbConnection) {
        let Some(host) = self.hosts.get_mut(key.host) else {
            return;
        };
        host.connections.insert(connection.local, key.number);
        if let Some(id) = host.ids.get_mut(&key.number) {
            id.cm = crate::id::CmObject::Ib(Box::new(connection));
        }
    }

    pub(crate) fn forget_connection(&mut self, host: usize, local: u32) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.connections.remove(&local);
        }
    }
}

/// Sends a message of a connection, once.
fn send(state: &mut SimState, key: IdKey, message: CmMessage) {
    let Some(host) = state.hosts.get_mut(key.host) else {
        return;
    };
    let Some(id) = host.ids.get(&key.number) else {
        return;
    };
    let (crate::id::CmObject::Ib(connection), Some(transport)) =
        (&id.cm, host.transport(id.attached))
    else {
        return;
    };
    Packet {
        host: key.host,
        source: connection.source,
        destination: connection.peer,
        payload: Payload::Cm(transport, message),
    }
    .send(state);
}

/// Sends a message of a connection until it is answered.
fn send_reliably(state: &mut SimState, key: IdKey, message: CmMessage) {
    let sequence = state.clock.next_sequence();
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    let timeout = connection.response_timeout;
    connection.unanswered = Some(Unanswered {
        message: message.clone(),
        retries: RETRIES,
        timeout,
        sequence,
        is_acknowledged: false,
    });
    let timer = Timer::Retransmit { id: key, sequence };
    state.clock.schedule(timeout, timer);
    send(state, key, message);
}

/// The peer has the message, and takes longer to answer. Only the first acknowledgment counts.
fn extend_timeout(state: &mut SimState, key: IdKey) {
    let next = state.clock.next_sequence();
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    let timeout = ACKNOWLEDGED_TIMEOUT + IbConnection::milliseconds(connection.ack_timeout);
    let waiting = connection.unanswered.as_mut();
    let Some(unanswered) = waiting.filter(|one| !one.is_acknowledged) else {
        return;
    };
    unanswered.is_acknowledged = true;
    unanswered.timeout = timeout;
    unanswered.sequence = next;
    let timer = Timer::Retransmit {
        id: key,
        sequence: next,
    };
    state.clock.schedule(timeout, timer);
}

/// No answer has come in time: the message is sent again, or given up.
pub(crate) fn retransmit(state: &mut SimState, key: IdKey, sequence: u64) {
    let Some(connection) = state.id(key).and_then(Id::ib) else {
        return;
    };
    let Some(unanswered) = &mut connection.unanswered else {
        return;
    };
    if unanswered.sequence != sequence {
        return;
    }
    if unanswered.retries == 0 {
        connection.unanswered = None;
        return give_up(state, key);
    }
    unanswered.retries -= 1;
    let (message, timeout) = (unanswered.message.clone(), unanswered.timeout);
    let timer = Timer::Retransmit { id: key, sequence };
    state.clock.schedule(timeout, timer);
    send(state, key, message);
}

/// No answer has come at all (`cm_process_send_error`).
fn give_up(state: &mut SimState, key: IdKey) {
    let Some(id) = state.id(key) else {
        return;
    };
    let id_state = id.state;
    let Some(connection) = id.ib() else {
        return;
    };
    let timed_out = EventDetails::with_errno(Errno::ETIMEDOUT);
    if connection.state == IbState::DreqSent {
        disconnect::enter_timewait(state, key);
        disconnect::report(state, key, timed_out);
        return;
    }
    connection.state = IbState::Idle;
    if id_state == State::Connect {
        state.post(key, EventNumber::UNREACHABLE, timed_out);
    }
}
