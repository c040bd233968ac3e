//! Two ids of one device with queue pairs, before or in a connection.

use rdmacm_core::{CmId, ConnParam, Event, EventChannel, EventKind, PortSpace};
use rdmacm_verbs::QueuePair;

use crate::site::{PATIENCE, Site, Soft, expect, free_port};

/// One side of a connection, with a channel of its own.
#[derive(Debug)]
pub struct Side {
    /// The id's channel.
    pub channel: EventChannel,
    /// The id.
    pub id: CmId,
    /// Its queue pair.
    pub queue_pair: QueuePair,
}

impl Side {
    /// The next event of this side, which must be a success of this kind.
    ///
    /// # Panics
    /// If it is not, or if none arrives.
    pub fn expect(&self, kind: EventKind) -> Event {
        let event = expect(&self.channel, kind);
        assert!(*event.id() == self.id);
        event
    }

    /// Disconnects, the queue pair first.
    pub fn disconnect(&self) {
        self.id
            .with_queue_pair(&self.queue_pair)
            .disconnect()
            .unwrap();
    }
}

/// A listener on a port of its own.
#[derive(Debug)]
pub struct Listening {
    /// The listener's channel.
    pub channel: EventChannel,
    /// The listener.
    pub id: CmId,
}

/// A connect request that has arrived.
///
/// The request is the first field, so that it is dropped first and rejected: the kernel
/// takes ten seconds to destroy an iWARP id whose request is pending.
#[derive(Debug)]
pub struct PendingRequest {
    /// The request.
    pub request: Event,
    /// The listener.
    pub listener: Listening,
    /// The connecting side.
    pub client: Side,
}

/// Two sides that are connected or about to be.
#[derive(Debug)]
pub struct Pair {
    /// The accepting side.
    pub server: Side,
    /// The connecting side.
    pub client: Side,
}

impl Site {
    /// A listener on the device's IPv4 address.
    #[must_use]
    pub fn listening(&self, port_space: PortSpace) -> Listening {
        Listening::on(self.channel(), self, port_space)
    }

    /// A side whose route to `listener` is resolved and whose queue pair is in INIT.
    #[must_use]
    pub fn side(&self, listener: &Listening) -> Side {
        self.side_on(self.channel(), listener)
    }

    /// Like [`side`](Self::side), on the caller's channel.
    #[must_use]
    pub fn side_on(&self, channel: EventChannel, listener: &Listening) -> Side {
        self.side_of(self.queue_pair(), channel, listener)
    }

    /// Like [`side_on`](Self::side_on), with the caller's queue pair.
    #[must_use]
    pub fn side_of(
        &self,
        queue_pair: QueuePair,
        channel: EventChannel,
        listener: &Listening,
    ) -> Side {
        let id = self.routed(&channel, listener.address());
        id.with_queue_pair(&queue_pair).init().unwrap();
        Side {
            channel,
            id,
            queue_pair,
        }
    }

    /// A connect request with default parameters.
    #[must_use]
    pub fn pending_request(&self) -> PendingRequest {
        self.pending_request_with(&ConnParam::new())
    }

    /// A connect request.
    #[must_use]
    pub fn pending_request_with(&self, param: &ConnParam) -> PendingRequest {
        let listener = self.listening(PortSpace::TCP);
        let client = self.side(&listener);
        PendingRequest::new(client, listener, param)
    }

    /// Two connected sides.
    #[must_use]
    pub fn pair(&self) -> Pair {
        self.pair_of(self.queue_pair(), self.queue_pair())
    }

    /// Connects the caller's queue pairs.
    #[must_use]
    pub fn pair_of(&self, client: QueuePair, server: QueuePair) -> Pair {
        let listener = self.listening(PortSpace::TCP);
        let client = self.side_of(client, self.channel(), &listener);
        let request = PendingRequest::new(client, listener, &ConnParam::new());
        request.accept_with(server, self, &ConnParam::new())
    }
}

impl Listening {
    /// A listener on the caller's channel.
    #[must_use]
    pub fn on(channel: EventChannel, site: &Site, port_space: PortSpace) -> Self {
        let id = channel.create_id(port_space).unwrap();
        id.bind(site.v4(free_port())).unwrap();
        id.listen(0).unwrap();
        Self { channel, id }
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> rdmacm_core::CmAddr {
        self.id.local_addr().unwrap().unwrap()
    }

    /// The next connect request.
    #[must_use]
    pub fn next_request(&self) -> Event {
        let request = expect(&self.channel, EventKind::ConnectRequest);
        assert!(*request.id() == self.id);
        request
    }
}

impl PendingRequest {
    /// Sends a connect request from `client` to `listener`.
    #[must_use]
    pub fn new(client: Side, listener: Listening, param: &ConnParam) -> Self {
        client
            .id
            .with_queue_pair(&client.queue_pair)
            .connect(param)
            .unwrap();
        let request = listener.next_request();
        Self {
            request,
            listener,
            client,
        }
    }

    /// Both sides, with a new queue pair for the server and the request pending. The
    /// server keeps the listener's channel; the listener is destroyed.
    #[must_use]
    pub fn into_pair(self, site: &Site) -> Pair {
        self.into_pair_with(site.queue_pair())
    }

    /// Like [`into_pair`](Self::into_pair), with the caller's queue pair.
    #[must_use]
    pub fn into_pair_with(self, queue_pair: QueuePair) -> Pair {
        let Self {
            client,
            listener: Listening { channel, id },
            request,
        } = self;
        drop(id);
        let server = Side {
            channel,
            id: request.into_child().unwrap(),
            queue_pair,
        };
        Pair { server, client }
    }

    /// Accepts; both sides are established on return.
    #[must_use]
    pub fn accept(self, site: &Site, param: &ConnParam) -> Pair {
        self.accept_with(site.queue_pair(), site, param)
    }

    /// Like [`accept`](Self::accept), with the caller's queue pair.
    #[must_use]
    pub fn accept_with(self, queue_pair: QueuePair, site: &Site, param: &ConnParam) -> Pair {
        let pair = self.into_pair_with(queue_pair);
        pair.accept(param);
        pair.establish(site);
        pair
    }
}

impl Pair {
    /// Accepts the client's request.
    pub fn accept(&self, param: &ConnParam) {
        let server = &self.server;
        let with = server.id.with_queue_pair(&server.queue_pair);
        with.init().unwrap();
        with.accept(param).unwrap();
    }

    /// Completes the handshake and reads the events of both sides. Returns the event
    /// with the server's reply.
    pub fn establish(&self, site: &Site) -> Event {
        let client = &self.client;
        let answer = match site.soft {
            Soft::Rxe => {
                let response = client.expect(EventKind::ConnectResponse);
                let with = client.id.with_queue_pair(&client.queue_pair);
                with.establish(&response).unwrap();
                response
            }
            Soft::Siw => client.expect(EventKind::Established),
        };
        self.server.expect(EventKind::Established);
        answer
    }

    /// Disconnects both sides, the client first, and reads both events.
    pub fn disconnect_both(&self) {
        self.client.disconnect();
        self.server.expect(EventKind::Disconnected);
        self.server.disconnect();
        let event = self.client.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Disconnected);
    }
}
