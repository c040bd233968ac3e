//! What carries messages from host to host, and what goes wrong there.

use std::time::Duration;

use rdmacm_core::{Gid, Transport};

use crate::cm::{self, CmMessage};
use crate::id::Attached;
use crate::iwarp::{self, IwMessage};
use crate::sim_state::SimState;
use crate::timer::Timer;
use crate::verbs::{self, DataMessage};

/// A message of the connection managers or of queue pairs, to be
/// [lost](crate::Host::drop_next) on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// The request to connect: REQ, or MPA's request frame on iWARP.
    Request,
    /// The reply of a peer that accepts: REP, or MPA's reply frame on iWARP.
    Reply,
    /// The confirmation of the reply: RTU. Not on iWARP.
    ReadyToUse,
    /// The rejection: REJ, or MPA's reply frame with its reject bit on iWARP.
    Reject,
    /// The acknowledgment of a message whose receiver takes longer: MRA. Not on
    /// iWARP.
    Acknowledgment,
    /// The request to disconnect: DREQ, or the end of the TCP connection on iWARP.
    DisconnectRequest,
    /// The reply to it: DREP. Not on iWARP.
    DisconnectReply,
    /// The request for a datagram service: SIDR REQ. Not on iWARP.
    ServiceRequest,
    /// The reply to it: SIDR REP. Not on iWARP.
    ServiceReply,
    /// A segment that sets up or refuses a TCP connection, on iWARP only.
    TcpHandshake,
    /// A request of a queue pair: a message, a read, a write or an atomic.
    Data,
    /// The reply to it: an acknowledgment, or what was read.
    DataReply,
}

/// How messages travel on the fabric.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// How long each message takes.
    pub(crate) delay: Duration,
    /// How many of 100 messages are lost.
    pub(crate) loss: u8,
    /// Messages that are lost on request.
    pub(crate) drops: Vec<Drop>,
}

/// Messages of a host that are lost on request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drop {
    pub(crate) host: usize,
    pub(crate) kind: MessageKind,
    pub(crate) count: usize,
}

/// A message on its way.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) host: usize,
    pub(crate) source: Gid,
    pub(crate) destination: Gid,
    pub(crate) payload: Payload,
}

/// What a packet carries.
#[derive(Debug)]
pub(crate) enum Payload {
    /// A message of InfiniBand's connection manager.
    Cm(Transport, CmMessage),
    /// A segment of an iWARP connection.
    Iw(IwMessage),
    /// What a queue pair sends.
    Data(Transport, DataMessage),
}

/// Where a packet has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) host: usize,
    pub(crate) attached: Attached,
    pub(crate) source: Gid,
    pub(crate) destination: Gid,
    pub(crate) transport: Transport,
}

impl Arrival {
    /// Answers the sender of what has arrived.
    pub(crate) fn answer(&self, state: &mut SimState, message: CmMessage) {
        Packet {
            host: self.host,
            source: self.destination,
            destination: self.source,
            payload: Payload::Cm(self.transport, message),
        }
        .send(state);
    }

    pub(crate) fn answer_iwarp(&self, state: &mut SimState, message: IwMessage) {
        Packet {
            host: self.host,
            source: self.destination,
            destination: self.source,
            payload: Payload::Iw(message),
        }
        .send(state);
    }
}

impl Payload {
    fn kind(&self) -> MessageKind {
        match self {
            Self::Cm(_, message) => message.kind(),
            Self::Iw(message) => message.kind(),
            Self::Data(_, message) => message.kind(),
        }
    }

    fn transport(&self) -> Transport {
        match self {
            Self::Cm(transport, _) | Self::Data(transport, _) => *transport,
            Self::Iw(_) => Transport::IWarp,
        }
    }
}

impl Packet {
    /// Sends the packet, which may be lost. Whether it arrives is decided anew when
    /// it does.
    pub(crate) fn send(self, state: &mut SimState) {
        let transport = self.payload.transport();
        let sender = state.locate_on(self.host, transport, self.source);
        let receiver = state.locate(transport, self.destination);
        let (Some(_), Some((receiver, _))) = (sender, receiver) else {
            return;
        };
        if self.is_lost(state) {
            return;
        }
        let delay = |host: usize| {
            let host = state.hosts.get(host);
            host.map_or(Duration::ZERO, |host| host.delay)
        };
        let delay = state.network.delay + delay(self.host) + delay(receiver);
        state.clock.schedule(delay, Timer::Deliver(self));
    }

    fn is_lost(&self, state: &mut SimState) -> bool {
        let is_responding = |host: Option<&crate::host_state::HostState>| {
            host.is_some_and(|host| host.is_responding)
        };
        if !is_responding(state.hosts.get(self.host)) {
            return true;
        }
        let kind = self.payload.kind();
        let drops = &mut state.network.drops;
        let requested = |drop: &Drop| drop.host == self.host && drop.kind == kind;
        if let Some(drop) = drops.iter_mut().find(|drop| requested(drop)) {
            drop.count -= 1;
            drops.retain(|drop| drop.count > 0);
            return true;
        }
        // TCP hides what the network loses.
        let is_tcp = self.payload.transport() == Transport::IWarp;
        !is_tcp && state.random.percent(state.network.loss)
    }

    /// The packet arrives, if there is still somebody to receive it.
    pub(crate) fn deliver(self, state: &mut SimState) {
        let transport = self.payload.transport();
        let Some((host, attached)) = state.locate(transport, self.destination) else {
            return;
        };
        if state.hosts.get(host).is_none_or(|host| !host.is_responding) {
            return;
        }
        let arrival = Arrival {
            host,
            attached,
            source: self.source,
            destination: self.destination,
            transport,
        };
        match self.payload {
            Payload::Cm(_, message) => cm::receive(state, arrival, message),
            Payload::Iw(message) => iwarp::receive(state, arrival, message),
            Payload::Data(_, message) => verbs::receive(state, arrival, message),
        }
    }
}

impl SimState {
    /// The host and port that the fabric reaches by this GID.
    pub(crate) fn locate(&self, transport: Transport, gid: Gid) -> Option<(usize, Attached)> {
        (0..self.hosts.len()).find_map(|host| {
            let attached = self.locate_on(host, transport, gid)?;
            Some((host, attached))
        })
    }

    /// The port of a host that the fabric reaches by this GID.
    fn locate_on(&self, host: usize, transport: Transport, gid: Gid) -> Option<Attached> {
        let mut devices = self.hosts.get(host)?.devices.iter().enumerate();
        devices.find_map(|(index, device)| {
            let port = device.reachable_port(gid)?;
            let attached = Attached {
                device: index,
                port,
            };
            (device.transport == transport).then_some(attached)
        })
    }
}
