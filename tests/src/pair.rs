//! Two ids of one device with their queue pairs, on the way to a connection.

use rdmacm_core::{CmId, ConnParam, Event, EventChannel, EventKind, PortSpace};
use rdmacm_verbs::QueuePair;

use crate::site::{PATIENCE, Site, Soft, expect, free_port};

/// One side of a connection, on a channel of its own.
#[derive(Debug)]
pub struct Side {
    /// Where the id reports.
    pub channel: EventChannel,
    /// The id.
    pub id: CmId,
    /// Its queue pair.
    pub queue_pair: QueuePair,
}

impl Side {
    /// The next event of this side, which is a success of this kind.
    ///
    /// # Panics
    /// When it is not, or none comes.
    #[expect(
        clippy::must_use_candidate,
        reason = "most callers only want it to have come"
    )]
    pub fn expect(&self, kind: EventKind) -> Event {
        let event = expect(&self.channel, kind);
        assert!(*event.id() == self.id);
        event
    }

    /// Ends the connection, queue pair first.
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
    /// Where it reports.
    pub channel: EventChannel,
    /// The listener.
    pub id: CmId,
}

/// A connect request that has arrived.
///
/// Dropped, it is answered first: the kernel takes ten seconds to destroy an
/// iWARP id that awaits an answer.
#[derive(Debug)]
pub struct PendingRequest {
    /// The request.
    pub request: Event,
    /// Who is asked.
    pub listener: Listening,
    /// Who asks.
    pub client: Side,
}

/// Two sides that are connected, or about to be.
#[derive(Debug)]
pub struct Pair {
    /// The one that accepted.
    pub server: Side,
    /// The one that connected.
    pub client: Side,
}

impl Site {
    /// A listener on the device's IPv4 address, for any number of requests.
    #[must_use]
    pub fn listening(&self, port_space: PortSpace) -> Listening {
        Listening::on(self.channel(), self, port_space)
    }

    /// A side that has resolved the way to `listener`, its queue pair in INIT.
    #[must_use]
    pub fn side(&self, listener: &Listening) -> Side {
        self.side_on(self.channel(), listener)
    }

    /// The same, on a channel of the caller's.
    #[must_use]
    pub fn side_on(&self, channel: EventChannel, listener: &Listening) -> Side {
        self.side_of(self.queue_pair(), channel, listener)
    }

    /// The same, of a queue pair of the caller's.
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

    /// A connect request that says no more than it must.
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

    /// Two queue pairs of the caller's, connected.
    #[must_use]
    pub fn pair_of(&self, client: QueuePair, server: QueuePair) -> Pair {
        let listener = self.listening(PortSpace::TCP);
        let client = self.side_of(client, self.channel(), &listener);
        let request = PendingRequest::new(client, listener, &ConnParam::new());
        request.accept_with(server, self, &ConnParam::new())
    }
}

impl Listening {
    /// A listener on a channel of the caller's.
    #[must_use]
    pub fn on(channel: EventChannel, site: &Site, port_space: PortSpace) -> Self {
        let id = channel.create_id(port_space).unwrap();
        id.bind(site.v4(free_port())).unwrap();
        id.listen(0).unwrap();
        Self { channel, id }
    }

    /// Where it listens.
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
    /// `client` asks `listener`.
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

    /// The side that was asked, with a queue pair and its request unanswered;
    /// it keeps its listener's channel, and the listener goes.
    #[must_use]
    pub fn into_pair(self, site: &Site) -> Pair {
        self.into_pair_with(site.queue_pair())
    }

    /// The same, with a queue pair of the caller's.
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

    /// Accepted, and established on both sides.
    #[must_use]
    pub fn accept(self, site: &Site, param: &ConnParam) -> Pair {
        self.accept_with(site.queue_pair(), site, param)
    }

    /// The same, with a queue pair of the caller's.
    #[must_use]
    pub fn accept_with(self, queue_pair: QueuePair, site: &Site, param: &ConnParam) -> Pair {
        let pair = self.into_pair_with(queue_pair);
        pair.accept(param);
        pair.establish(site);
        pair
    }
}

impl Pair {
    /// The server accepts the client's request.
    pub fn accept(&self, param: &ConnParam) {
        let server = &self.server;
        let with = server.id.with_queue_pair(&server.queue_pair);
        with.init().unwrap();
        with.accept(param).unwrap();
    }

    /// The client completes the handshake where its transport has it do so, and
    /// both know that they are connected. The event with the server's answer.
    #[expect(
        clippy::must_use_candidate,
        reason = "most callers only want it to have come"
    )]
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
