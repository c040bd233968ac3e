//! Making connections.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use rdmacm::{CmConnection, Connector, Node};
use rdmacm_core::{IdHandle, QpType};
use rdmacm_verbs::{Context, ProtectionDomain, QpCaps, QueuePair};
use tokio::task::JoinSet;

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

/// How many connect at once.
const AT_ONCE: u32 = 64;

/// The depth of each queue, as in the C program.
const REQUESTS: u32 = 32;

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "connect",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| beside(target, 0, count, meter),
    },
    Workload {
        name: "connect-messages",
        peer: PeerKind::MessageAcceptor,
        run: |target, count, meter| {
            let node = Node::open()?;
            in_turn(count, meter, || {
                let connector = Connector::new((target.address, target.port));
                Ok(connector.with_node(&node).connect()?)
            })
        },
    },
    Workload {
        name: "connect-tokio",
        peer: PeerKind::Acceptor,
        run: on_tokio,
    },
    Workload {
        name: "connect-64-at-once",
        peer: PeerKind::Acceptor,
        run: at_once,
    },
    Workload {
        name: "connect-at-10",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| beside(target, 10, count, meter),
    },
    Workload {
        name: "connect-at-100",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| beside(target, 100, count, meter),
    },
    Workload {
        name: "connect-at-1000",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| beside(target, 1_000, count, meter),
    },
    Workload {
        name: "connect-at-10000",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| beside(target, 10_000, count, meter),
    },
    Workload {
        name: "idle-connections",
        peer: PeerKind::Acceptor,
        run: |target, count, meter| {
            let (node, queue_pairs) = (Node::open()?, QueuePairs::default());
            idle(count, meter, || {
                let connector = Connector::new((target.address, target.port));
                let create = |id: &IdHandle| queue_pairs.create(id);
                Ok(connector.with_node(&node).connect_with(create)?)
            })
        },
    },
    Workload {
        name: "idle-connections-messages",
        peer: PeerKind::MessageAcceptor,
        run: |target, count, meter| {
            let node = Node::open()?;
            idle(count, meter, || {
                let connector = Connector::new((target.address, target.port));
                Ok(connector.with_node(&node).connect()?)
            })
        },
    },
];

/// Makes queue pairs that carry nothing, each with a completion queue and channel of its own.
/// The device is opened once, as librdmacm does.
#[derive(Debug, Default)]
pub(crate) struct QueuePairs(OnceLock<ProtectionDomain>);

impl QueuePairs {
    pub(crate) fn create(&self, id: &IdHandle) -> std::io::Result<QueuePair> {
        let domain = if let Some(domain) = self.0.get() {
            domain
        } else {
            let device = id.addresses()?.device.ok_or(std::io::ErrorKind::NotFound)?;
            let domain = Context::open_by_id(device)?.create_protection_domain()?;
            self.0.get_or_init(|| domain)
        };
        let options = QueuePair::options(QpType::RC).protection_domain(domain);
        let options = options.caps(QpCaps {
            max_send_wr: REQUESTS,
            max_recv_wr: REQUESTS,
            ..QpCaps::default()
        });
        Ok(options
            .with_completion_channels()
            .create(domain.context())?)
    }
}

/// One connection after the other, beside one that keeps the device open, as librdmacm does.
/// Closing them is not measured.
fn in_turn<C>(
    count: u32,
    meter: &mut Meter,
    connect: impl Fn() -> anyhow::Result<C>,
) -> anyhow::Result<()> {
    let first = connect()?;
    for _ in 0..count {
        let connection = meter.section(1, &connect)?;
        drop(connection);
    }
    drop(first);
    Ok(())
}

/// Connections that do nothing, beside one that keeps the device open.
fn idle<C>(
    count: u32,
    meter: &mut Meter,
    connect: impl Fn() -> anyhow::Result<C>,
) -> anyhow::Result<()> {
    let first = connect()?;
    let mut connections = Vec::with_capacity(count as usize);
    meter.section(count.into(), || -> anyhow::Result<()> {
        for _ in 0..count {
            connections.push(connect()?);
        }
        Ok(())
    })?;
    drop((connections, first));
    Ok(())
}

/// One connection after the other, on tokio.
fn on_tokio(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let node = runtime.block_on(async { rdmacm::tokio::Node::open() })?;
    let queue_pairs = Arc::new(QueuePairs::default());
    in_turn(count, meter, || {
        let connector = rdmacm::tokio::Connector::new((target.address, target.port));
        let create = |id: &IdHandle| queue_pairs.create(id);
        let connect = async { connector.with_node(&node).connect_with(create).await };
        Ok(runtime.block_on(connect)?)
    })
}

/// Tasks of one runtime connect at the same time, on one node.
fn at_once(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let queue_pairs = Arc::new(QueuePairs::default());
    runtime.block_on(async {
        let node = rdmacm::tokio::Node::open()?;
        drop(connect_all(target, 1, &node, &queue_pairs).await?);
        anyhow::Ok(())
    })?;
    for _ in 0..count / AT_ONCE {
        let node = runtime.block_on(async { rdmacm::tokio::Node::open() })?;
        let connections = meter.section(AT_ONCE.into(), || {
            runtime.block_on(connect_all(target, AT_ONCE, &node, &queue_pairs))
        })?;
        drop(connections);
    }
    Ok(())
}

type TokioConnection = rdmacm::tokio::CmConnection<QueuePair>;

async fn connect_all(
    target: Target,
    count: u32,
    node: &rdmacm::tokio::Node,
    queue_pairs: &Arc<QueuePairs>,
) -> anyhow::Result<Vec<TokioConnection>> {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let connector = rdmacm::tokio::Connector::new((target.address, target.port));
        let queue_pairs = Arc::clone(queue_pairs);
        let create = move |id: &IdHandle| queue_pairs.create(id);
        tasks.spawn(connector.with_node(node).connect_with(create));
    }
    let mut connections = Vec::new();
    while let Some(connected) = tasks.join_next().await {
        connections.push(connected.context("a task")??);
    }
    Ok(connections)
}

/// Beside `live` connections of the same node.
fn beside(target: Target, live: u32, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let (node, queue_pairs) = (Node::open()?, QueuePairs::default());
    let connect = || -> anyhow::Result<CmConnection<QueuePair>> {
        let connector = Connector::new((target.address, target.port));
        let create = |id: &IdHandle| queue_pairs.create(id);
        Ok(connector.with_node(&node).connect_with(create)?)
    };
    let connections = (0..live).map(|_| connect());
    let connections = connections.collect::<anyhow::Result<Vec<_>>>()?;
    in_turn(count, meter, connect)?;
    drop(connections);
    Ok(())
}
