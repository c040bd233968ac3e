//! What carries messages from host to host, and what goes wrong there.

use std::time::Duration;

use rdmacm_core::{Gid, Transport};

use crate::cm::{self, CmMessage};
use crate::device::Device;
use crate::host_state::HostState;
use crate::id::Attached;
use crate::iwarp::{self, IwMessage};
use crate::sim_state::SimState;
use crate::tcp::{self, Segments};
use crate::timer::Timer;
use crate::verbs::{self, DataMessage};

/// A message of the connection managers or of queue pairs, to be
/// [lost](crate::Host::drop_next) on request. On iWARP, only messages of
/// [`TcpHandshake`](Self::TcpHandshake) are lost: TCP sends all others again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// The request to connect: REQ.
    Request,
    /// The reply of a peer that accepts: REP.
    Reply,
    /// The confirmation of the reply: RTU.
    ReadyToUse,
    /// The rejection: REJ.
    Reject,
    /// The acknowledgment of a message whose receiver takes longer: MRA.
    Acknowledgment,
    /// The request to disconnect: DREQ.
    DisconnectRequest,
    /// The reply to it: DREP.
    DisconnectReply,
    /// The request for a datagram service: SIDR REQ.
    ServiceRequest,
    /// The reply to it: SIDR REP.
    ServiceReply,
    /// A segment that sets up or refuses a TCP connection, on iWARP only. The side that connects
    /// sends again after 1, 3, 7, 15, 31 and 63 s.
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
    /// Those of TCP.
    pub(crate) segments: Segments,
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
        if self.is_resent_by_tcp() {
            return tcp::send(state, self);
        }
        if !state.can_leave(&self) {
            return;
        }
        let receiver = state.locate(self.payload.transport(), self.destination);
        let Some((receiver, _)) = receiver else {
            return self.have_tcp_refuse(state);
        };
        if self.is_lost(state) {
            return;
        }
        let delay = state.delay(self.host, receiver);
        state.clock.schedule(delay, Timer::Deliver(self));
    }

    /// The first segment of a TCP connection to an address without an iWARP device is refused by its
    /// host.
    fn have_tcp_refuse(self, state: &mut SimState) {
        let Payload::Iw(IwMessage::Syn { from, .. }) = self.payload else {
            return;
        };
        let has_it = |device: &Device| device.is_link_up && device.has_ip_gid(self.destination);
        let refuses = |host: &HostState| host.is_responding && host.devices.iter().any(has_it);
        let Some(host) = state.hosts.iter().position(refuses) else {
            return;
        };
        if self.is_lost(state) {
            return;
        }
        let answer = Self {
            host,
            source: self.destination,
            destination: self.source,
            payload: Payload::Iw(IwMessage::Reset { to: from }),
        };
        if answer.is_lost(state) {
            return;
        }
        let round_trip = state.delay(self.host, host).saturating_mul(2);
        state.clock.schedule(round_trip, Timer::Deliver(answer));
    }

    /// Whether TCP sends it again until it arrives. What sets up a TCP connection has timers of
    /// its own.
    fn is_resent_by_tcp(&self) -> bool {
        let is_tcp = self.payload.transport() == Transport::IWarp;
        is_tcp && self.payload.kind() != MessageKind::TcpHandshake
    }

    fn is_lost(&self, state: &mut SimState) -> bool {
        let kind = self.payload.kind();
        let drops = &mut state.network.drops;
        let requested = |drop: &Drop| drop.host == self.host && drop.kind == kind;
        if let Some(drop) = drops.iter_mut().find(|drop| requested(drop)) {
            drop.count -= 1;
            drops.retain(|drop| drop.count > 0);
            return true;
        }
        // That of TCP's handshake would delay connections only, and is not simulated.
        let is_tcp = self.payload.transport() == Transport::IWarp;
        !is_tcp && state.random.percent(state.network.loss)
    }

    /// The packet arrives, if there is still somebody to receive it.
    pub(crate) fn deliver(self, state: &mut SimState) {
        let transport = self.payload.transport();
        let responds = |host: usize| state.hosts.get(host).is_some_and(|host| host.is_responding);
        let receiver = state.locate(transport, self.destination);
        let Some((host, attached)) = receiver.filter(|(host, _)| responds(*host)) else {
            if self.is_resent_by_tcp() {
                tcp::hold(state, self);
            }
            return;
        };
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
    /// Whether its host responds, and has a link.
    pub(crate) fn can_leave(&self, packet: &Packet) -> bool {
        let transport = packet.payload.transport();
        let port = self.locate_on(packet.host, transport, packet.source);
        let host = self.hosts.get(packet.host);
        port.is_some() && host.is_some_and(|host| host.is_responding)
    }

    /// How long a message takes from host to host.
    pub(crate) fn delay(&self, sender: usize, receiver: usize) -> Duration {
        let of = |host: usize| {
            let host = self.hosts.get(host);
            host.map_or(Duration::ZERO, |host| host.delay)
        };
        let delay = self.network.delay.saturating_add(of(sender));
        delay.saturating_add(of(receiver))
    }

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
