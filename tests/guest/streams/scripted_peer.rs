//! A peer of a stream that says and posts what it likes.

use std::thread;

use rdmacm::{
    CmConnection, Connector, Incoming, Listener, Node, RdmaListener, RdmaStream, StreamOptions,
};
use rdmacm_core::{AccessFlags, ConnParam};
use rdmacm_rsocket::{Announcement, ByteOrder, Handshake, Message, RemoteTable, Transport};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_verbs::{
    QpCaps, QueuePair, RemoteAccessRegion, RemoteMemory, SendOperation, SendRequest,
};

/// A connected peer.
pub(super) struct Peer {
    pub(super) connection: CmConnection<QueuePair>,
    /// The stream's.
    pub(super) handshake: Handshake,
    pub(super) transport: Transport,
    pub(super) memory: RemoteAccessRegion,
}

/// What the stream did to be connected with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Accepted,
    Connected,
}

impl Role {
    pub(super) const BOTH: [Self; 2] = [Self::Accepted, Self::Connected];

    /// A peer with a handshake that may be changed before, and the stream to it.
    pub(super) fn connect(
        self,
        site: &Site,
        options: &StreamOptions,
        change: impl FnOnce(&mut Vec<u8>) + Send,
    ) -> (Peer, RdmaStream) {
        self.connect_on(site, &Node::open().unwrap(), options, change)
    }

    /// The same, with a stream of this node.
    pub(super) fn connect_on(
        self,
        site: &Site,
        node: &Node,
        options: &StreamOptions,
        change: impl FnOnce(&mut Vec<u8>) + Send,
    ) -> (Peer, RdmaStream) {
        match self {
            Self::Accepted => {
                let listener = Listener::options().with_node(node).bind(site.v4(0));
                let listener = RdmaListener::new(listener.unwrap(), options.clone());
                Peer::connect_by(site, &listener, change)
            }
            Self::Connected => {
                let listener = Listener::bind(site.v4(0)).unwrap();
                let connector = Connector::new(listener.local_addr()).with_node(node);
                let connector = connector.deadline(PATIENCE);
                let options = options.clone();
                accept(
                    site,
                    &listener,
                    || connector.connect_stream(options),
                    change,
                )
            }
        }
    }
}

/// A peer that accepts a stream with a handshake that may be changed before, and the stream.
pub(super) fn accept(
    site: &Site,
    listener: &Listener,
    connect: impl FnOnce() -> rdmacm::Result<RdmaStream> + Send,
    change: impl FnOnce(&mut Vec<u8>),
) -> (Peer, RdmaStream) {
    thread::scope(|scope| {
        let stream = scope.spawn(move || connect().unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        let peer = Peer::accept(site, incoming, change).unwrap();
        let stream = stream.join().unwrap();
        be_patient(&stream);
        (peer, stream)
    })
}

fn be_patient(stream: &RdmaStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
}

/// How many receive requests the peer has posted.
pub(super) const RECEIVES: u32 = 64;

/// How many messages the stream may send to the peer.
pub(super) const CREDITS: u16 = 32;

/// Where in the peer's memory its tables are, and where the stream writes first.
pub(super) const TABLE: usize = 0;
pub(super) const ANNOUNCED: usize = 1024;
pub(super) const ANNOUNCED_LENGTH: u32 = 1024;

/// A peer that is not connected yet.
struct Unconnected {
    queue_pair: QueuePair,
    memory: RemoteAccessRegion,
    private_data: Vec<u8>,
}

impl Unconnected {
    /// With a handshake that may be changed before it is sent.
    fn new(site: &Site, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let queue_pair = site.queue_pair_with(QpCaps {
            max_send_wr: 512,
            max_recv_wr: RECEIVES,
            max_inline_data: 64,
            ..QpCaps::default()
        });
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        let memory = queue_pair.protection_domain().expose(4096, access).unwrap();
        let remote = memory.remote();
        let handshake = Handshake {
            byte_order: ByteOrder::NATIVE,
            credits: CREDITS,
            map_entries: 0,
            table: RemoteTable {
                address: remote.address() + TABLE as u64,
                key: remote.key(),
                entries: 2,
            },
            announcement: Announcement {
                address: remote.address() + ANNOUNCED as u64,
                key: remote.key(),
                length: ANNOUNCED_LENGTH,
            },
        };
        let mut private_data = handshake.to_bytes().to_vec();
        change(&mut private_data);
        Self {
            queue_pair,
            memory,
            private_data,
        }
    }
}

/// Posts requests for messages, on a queue pair that is at least in INIT.
fn post_receives(queue_pair: &QueuePair, count: u32) {
    if count == 0 {
        return;
    }
    let rooms = queue_pair.protection_domain().allocate(4 * count as usize);
    for room in rooms.unwrap().into_chunks(4) {
        queue_pair.post_receive(room).unwrap();
    }
}

impl Peer {
    /// Connects to a stream's listener, with a handshake that may be changed before.
    pub(super) fn connect(
        site: &Site,
        port: u16,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> rdmacm::Result<Self> {
        Self::connect_with(site, port, change, ConnParam::new(), RECEIVES)
    }

    /// Connects with so many receive requests, without any of which the stream sends a message as
    /// often as the parameters say.
    pub(super) fn connect_with(
        site: &Site,
        port: u16,
        change: impl FnOnce(&mut Vec<u8>),
        param: ConnParam,
        receives: u32,
    ) -> rdmacm::Result<Self> {
        let peer = Unconnected::new(site, change);
        let param = param.private_data(&peer.private_data).unwrap();
        let connector = Connector::new(site.v4(port)).deadline(PATIENCE);
        let resolved = connector.param(param).resolve()?;
        let queue_pair = resolved.id().with_queue_pair(&peer.queue_pair);
        queue_pair.init().unwrap();
        post_receives(&peer.queue_pair, receives);
        let connection = resolved.connect_on(peer.queue_pair)?;
        let handshake = Handshake::from_bytes(connection.private_data()).unwrap();
        Ok(Self::new(site, connection, handshake, peer.memory))
    }

    /// Connects to a stream's listener, and returns the stream too.
    pub(super) fn connect_by(
        site: &Site,
        listener: &RdmaListener,
        change: impl FnOnce(&mut Vec<u8>) + Send,
    ) -> (Self, RdmaStream) {
        thread::scope(|scope| {
            let port = listener.local_addr().unwrap().port();
            let peer = scope.spawn(move || Self::connect(site, port, change).unwrap());
            let (stream, _) = super::accept(listener);
            be_patient(&stream);
            (peer.join().unwrap(), stream)
        })
    }

    /// Accepts a stream that connects, with a handshake that may be changed before.
    pub(super) fn accept(
        site: &Site,
        incoming: Incoming,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> rdmacm::Result<Self> {
        let handshake = Handshake::from_bytes(incoming.private_data()).unwrap();
        let peer = Unconnected::new(site, change);
        let queue_pair = incoming.id().with_queue_pair(&peer.queue_pair);
        queue_pair.init().unwrap();
        post_receives(&peer.queue_pair, RECEIVES);
        let param = ConnParam::new().private_data(&peer.private_data);
        let connection = incoming.param(param.unwrap()).accept_on(peer.queue_pair)?;
        Ok(Self::new(site, connection, handshake, peer.memory))
    }

    fn new(
        site: &Site,
        connection: CmConnection<QueuePair>,
        handshake: Handshake,
        memory: RemoteAccessRegion,
    ) -> Self {
        Self {
            connection,
            handshake,
            transport: match site.soft {
                Soft::Rxe => Transport::Immediate,
                Soft::Siw => Transport::Send,
            },
            memory,
        }
    }

    /// Writes bytes at this place of the announced memory, and then a message.
    pub(super) fn write(&self, at: u64, bytes: &[u8], word: u32) {
        let Announcement { address, key, .. } = self.handshake.announcement;
        let remote = RemoteMemory::new(address + at, bytes.len() as u64, key).unwrap();
        self.post(SendRequest::inline(SendOperation::Write(remote), bytes));
        self.send(word);
    }

    /// Writes an announcement, and the message that reports it.
    pub(super) fn announce(&self, entry: RemoteMemory, announcement: &[u8], word: u32) {
        match self.transport {
            Transport::Immediate => {
                let write = SendOperation::WriteWithImmediate(entry, word);
                self.post(SendRequest::inline(write, announcement));
            }
            Transport::Send => {
                self.post(SendRequest::inline(
                    SendOperation::Write(entry),
                    announcement,
                ));
                self.send(word);
            }
        }
    }

    pub(super) fn send(&self, word: u32) {
        match self.transport {
            Transport::Immediate => {
                let write = SendOperation::WriteWithImmediate(RemoteMemory::NONE, word);
                self.post(SendRequest::inline(write, &[]));
            }
            Transport::Send => {
                let bytes = self.transport.encode(word);
                self.post(SendRequest::inline(SendOperation::Send, &bytes));
            }
        }
    }

    pub(super) fn post(&self, request: SendRequest<'_>) {
        // The stream may have ended already.
        let _ = self.connection.queue_pair().post_send(request);
    }

    pub(super) fn post_receives(&self, count: u32) {
        post_receives(self.connection.queue_pair(), count);
    }

    /// The stream's next message.
    pub(super) fn next_message(&self) -> Message {
        let queue = self.connection.queue_pair().recv_cq();
        let completion = queue.next(PATIENCE).unwrap().unwrap();
        let done = completion.result().unwrap();
        let word = match self.transport {
            Transport::Immediate => done.immediate.unwrap(),
            Transport::Send => {
                let buffer = completion.sg_list.into_buffer().unwrap();
                self.transport.decode(*buffer.first_chunk().unwrap())
            }
        };
        Message::decode(word)
    }

    /// Bytes of the peer's memory, which the stream may have written.
    pub(super) fn memory_at(&self, place: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read(place, &mut bytes);
        bytes
    }
}

pub(super) fn word(message: Message) -> u32 {
    message.encode().unwrap()
}

pub(super) const OTHER_ORDER: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Big => ByteOrder::Little,
    ByteOrder::Little => ByteOrder::Big,
};
