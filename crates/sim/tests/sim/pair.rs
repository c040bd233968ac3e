//! Two hosts that connect.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdmacm_core::{
    CmId, ConnParam, DeviceId, Event, EventChannel, EventKind, PortSpace, QpType, RdmaDevices,
};
use rdmacm_sim::{Fabric, Host};
use rdmacm_verbs::{DeviceSource, QueuePair};

use crate::{SECOND, expect};

pub(crate) const PORT: u16 = 7471;

/// Two hosts with a device of the same kind each.
pub(crate) struct Hosts {
    pub(crate) fabric: Fabric,
    pub(crate) client: Host,
    pub(crate) server: Host,
    pub(crate) is_iwarp: bool,
    numbers: AtomicU32,
    /// The queue pairs that `client_param` and `server_param` name. iWARP needs them.
    _queue_pairs: Vec<QueuePair>,
}

impl Hosts {
    pub(crate) fn roce() -> Self {
        Self::new(Fabric::roce(["client", "server"]), false)
    }

    pub(crate) fn iwarp() -> Self {
        Self::new(Fabric::iwarp(["client", "server"]), true)
    }

    pub(crate) fn each() -> [Self; 2] {
        [Self::roce(), Self::iwarp()]
    }

    fn new(fabric: Fabric, is_iwarp: bool) -> Self {
        fabric.set_idle_time(Duration::from_millis(1));
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        let mut queue_pairs = Vec::new();
        if is_iwarp {
            queue_pairs.extend(queue_pairs_of(&client));
            queue_pairs.extend(queue_pairs_of(&server));
        }
        Self {
            fabric,
            client,
            server,
            is_iwarp,
            numbers: AtomicU32::new(0),
            _queue_pairs: queue_pairs,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (self.server.address().unwrap(), PORT).into()
    }

    /// The number of a queue pair of the client that no connection has.
    pub(crate) fn free_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What either transport has instead of the other's.
    pub(crate) fn choose<T>(&self, roce: T, iwarp: T) -> T {
        if self.is_iwarp { iwarp } else { roce }
    }

    pub(crate) fn listen(&self, backlog: u32) -> Listener {
        self.listen_for(PortSpace::TCP, backlog)
    }

    pub(crate) fn listen_for(&self, port_space: PortSpace, backlog: u32) -> Listener {
        let channel = self.server.channel().unwrap();
        let id = channel.create_id(port_space).unwrap();
        id.bind(self.address()).unwrap();
        id.listen(backlog).unwrap();
        Listener { channel, id }
    }

    /// An id of the client with a route to the server.
    pub(crate) fn routed(&self, channel: &EventChannel) -> CmId {
        self.routed_for(PortSpace::TCP, channel)
    }

    pub(crate) fn routed_for(&self, port_space: PortSpace, channel: &EventChannel) -> CmId {
        let id = channel.create_id(port_space).unwrap();
        id.resolve_addr(None, self.address(), SECOND).unwrap();
        expect(channel, EventKind::AddrResolved);
        id.resolve_route(SECOND).unwrap();
        expect(channel, EventKind::RouteResolved);
        id
    }

    /// A request that the server has read.
    pub(crate) fn ask(self, param: ConnParam) -> Asked {
        let listener = self.listen(1);
        let channel = self.client.channel().unwrap();
        let id = self.routed(&channel);
        id.connect(param).unwrap();
        let request = listener.next_request();
        Asked {
            hosts: self,
            client: Side { channel, id },
            listener,
            request,
        }
    }

    /// A connection that both sides know is established.
    pub(crate) fn connect(self) -> Connected {
        let asked = self.ask(client_param());
        let Asked {
            hosts,
            client,
            listener,
            request,
        } = asked;
        let child = request.into_child().unwrap();
        child.accept(server_param()).unwrap();
        if hosts.is_iwarp {
            client.expect(EventKind::Established);
        } else {
            client.expect(EventKind::ConnectResponse);
            client.id.establish().unwrap();
        }
        expect(&listener.channel, EventKind::Established);
        Connected {
            hosts,
            client,
            listener,
            server: child,
        }
    }
}

pub(crate) const CLIENT_QP: u32 = 17;
const SERVER_QP: u32 = 18;

/// Queue pairs of an iWARP host with all numbers up to the server's.
fn queue_pairs_of(host: &Host) -> Vec<QueuePair> {
    let device = host.list().unwrap().remove(0);
    let id = DeviceId {
        index: device.index,
        guid: device.guid,
    };
    let context = DeviceSource::open(host, id).unwrap();
    let create = |_| QueuePair::options(QpType::RC).create(&context).unwrap();
    (1..=SERVER_QP).map(create).collect()
}

pub(crate) fn client_param() -> ConnParam {
    ConnParam::new().qp_number(CLIENT_QP)
}

pub(crate) fn server_param() -> ConnParam {
    ConnParam::new().qp_number(SERVER_QP)
}

pub(crate) struct Listener {
    pub(crate) channel: EventChannel,
    pub(crate) id: CmId,
}

impl Listener {
    #[track_caller]
    pub(crate) fn next_request(&self) -> Event {
        let event = self.channel.next_event(SECOND).unwrap();
        assert_eq!(event.kind(), EventKind::ConnectRequest);
        event
    }
}

pub(crate) struct Side {
    pub(crate) channel: EventChannel,
    pub(crate) id: CmId,
}

impl Side {
    #[track_caller]
    pub(crate) fn expect(&self, kind: EventKind) -> Event {
        let event = self.channel.next_event(None).unwrap();
        assert_eq!(event.kind(), kind, "{:?}", event.failure());
        event
    }

    #[track_caller]
    pub(crate) fn expect_errno(&self, kind: EventKind, errno: i32) {
        let event = self.expect(kind);
        let failure = event.failure().unwrap();
        assert_eq!(failure.raw_os_error(), Some(errno), "{failure}");
    }
}

pub(crate) struct Asked {
    pub(crate) hosts: Hosts,
    pub(crate) client: Side,
    pub(crate) listener: Listener,
    pub(crate) request: Event,
}

pub(crate) struct Connected {
    pub(crate) hosts: Hosts,
    pub(crate) client: Side,
    pub(crate) listener: Listener,
    pub(crate) server: CmId,
}
