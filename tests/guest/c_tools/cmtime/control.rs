//! The TCP connections that coordinate instances of cmtime: roles, addresses, and
//! barriers.
//!
//! One instance is the root, the others are leaves. Each leaf sends its description;
//! when the root has all, it sends all to every leaf. At a barrier a leaf sends one
//! byte, the number of the step, and waits for the same byte; the root answers when it
//! has received the byte of each leaf.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Instant;

use rdmacm_tests::PATIENCE;

use crate::tcp;

/// The address on which the root listens for leaves.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The role of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Connects,
    Listens,
}

impl Role {
    fn number(self) -> u32 {
        match self {
            Self::Connects => 0,
            Self::Listens => 1,
        }
    }
}

/// The description of an instance that all receive: `struct peer_info`, a
/// `sockaddr_storage` and a role in native layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) role: Role,
    /// The address on which it listens.
    pub(super) address: Option<SocketAddrV4>,
}

impl Peer {
    pub(super) const CONNECTS: Self = Self {
        role: Role::Connects,
        address: None,
    };
    const SIZE: usize = 136;
    const ROLE: usize = 128;

    pub(super) fn listens(address: SocketAddrV4) -> Self {
        Self {
            role: Role::Listens,
            address: Some(address),
        }
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        if let Some(address) = self.address {
            let family = u16::try_from(libc::AF_INET).unwrap();
            bytes[..2].copy_from_slice(&family.to_ne_bytes());
            bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
            bytes[4..8].copy_from_slice(&address.ip().octets());
        }
        let role = self.role.number().to_ne_bytes();
        bytes[Self::ROLE..Self::ROLE + 4].copy_from_slice(&role);
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let role = bytes[Self::ROLE..Self::ROLE + 4].try_into().unwrap();
        if u32::from_ne_bytes(role) == Role::Connects.number() {
            return Self::CONNECTS;
        }
        let ip: [u8; 4] = bytes[4..8].try_into().unwrap();
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        Self::listens(SocketAddrV4::new(ip.into(), port))
    }
}

/// A step at which all instances wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    Begin = 0,
    Prepared = 7,
    Connected = 12,
    Disconnected = 14,
}

/// This side of the coordination: the root of one tool, or all leaves of one tool.
pub(super) struct Control {
    streams: Vec<TcpStream>,
    is_root: bool,
}

impl Control {
    /// Accepts a tool as the only leaf, with the root as one of several instances of
    /// this side: receives its description and sends all descriptions.
    pub(super) fn of_root(listener: &TcpListener, ours: &[Peer]) -> Self {
        let mut stream = tcp::accept(listener);
        prepare(&stream);
        let mut received = [0; Peer::SIZE];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(Peer::from_bytes(&received), Peer::CONNECTS);
        let all = ours.iter().chain([&Peer::CONNECTS]);
        let all: Vec<u8> = all.flat_map(|peer| peer.to_bytes()).collect();
        stream.write_all(&all).unwrap();
        Self {
            streams: vec![stream],
            is_root: true,
        }
    }

    /// Connects as every leaf of a tool, once it listens, and returns the tool's
    /// address.
    pub(super) fn of_leaves(port: u16, count: usize) -> (Self, SocketAddrV4) {
        let connect = |_| connect_when_it_listens(SocketAddrV4::new(ADDRESS, port));
        let mut streams: Vec<_> = (0..count).map(connect).collect();
        for stream in &mut streams {
            stream.write_all(&Peer::CONNECTS.to_bytes()).unwrap();
        }
        let mut root = None;
        for stream in &mut streams {
            let mut all = vec![[0; Peer::SIZE]; count + 1];
            for peer in &mut all {
                stream.read_exact(peer).unwrap();
            }
            let mut all = all.iter().map(Peer::from_bytes);
            let first = all.next().unwrap();
            assert!(all.all(|leaf| leaf == Peer::CONNECTS));
            assert!(root.is_none_or(|root| root == first), "{root:?}, {first:?}");
            root = Some(first);
        }
        let control = Self {
            streams,
            is_root: false,
        };
        (control, root.unwrap().address.unwrap())
    }

    /// Waits until the tool has reached this barrier.
    pub(super) fn wait_at(&mut self, barrier: Barrier) {
        let number = barrier as u8;
        if !self.is_root {
            self.send(number);
        }
        for stream in &mut self.streams {
            let mut received = [0];
            stream.read_exact(&mut received).unwrap();
            assert_eq!(received, [number], "{barrier:?}");
        }
        if self.is_root {
            self.send(number);
        }
    }

    fn send(&mut self, number: u8) {
        for stream in &mut self.streams {
            stream.write_all(&[number]).unwrap();
        }
    }
}

fn connect_when_it_listens(address: SocketAddrV4) -> TcpStream {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                prepare(&stream);
                return stream;
            }
            Err(refused) => assert!(Instant::now() < until, "{refused}"),
        }
        std::thread::yield_now();
    }
}

fn prepare(stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}
