//! An event for one of many tasks that wait on a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use rdmacm::tokio::{Connector, Listener, Node};
use tokio::task::JoinSet;

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const DEADLINE: Duration = Duration::from_secs(10);

pub(super) const WORKLOADS: &[Workload] = &[
    workload("waiters-10", |target, count, meter| {
        beside(target, 10, count, meter)
    }),
    workload("waiters-100", |target, count, meter| {
        beside(target, 100, count, meter)
    }),
    workload("waiters-1000", |target, count, meter| {
        beside(target, 1_000, count, meter)
    }),
    workload("waiters-10000", |target, count, meter| {
        beside(target, 10_000, count, meter)
    }),
];

const fn workload(
    name: &'static str,
    run: fn(Target, u32, &mut Meter) -> anyhow::Result<()>,
) -> Workload {
    Workload {
        name,
        peer: PeerKind::None,
        run,
    }
}

/// Resolves an address and a route, while `waiters` other tasks wait for requests of listeners
/// of their own.
fn beside(target: Target, waiters: u32, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(async {
            let node = Node::open()?;
            let mut tasks = JoinSet::new();
            let waiting = Arc::new(AtomicU32::new(0));
            for _ in 0..waiters {
                let listener = Listener::options().with_node(&node);
                let listener = listener.bind((target.address, 0))?;
                let waiting = Arc::clone(&waiting);
                tasks.spawn(async move {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    listener.accept(None).await.map(drop)
                });
            }
            // A runtime polls only some of its tasks between two polls of this one.
            while waiting.load(Ordering::Relaxed) < waiters {
                tokio::task::yield_now().await;
            }
            anyhow::Ok((node, tasks))
        })
        .and_then(|(node, mut tasks)| {
            let one = || async {
                let connector = Connector::new((target.address, target.port));
                let connector = connector.with_node(&node).deadline(DEADLINE);
                connector.resolve().await.map(drop)
            };
            runtime.block_on(one())?;
            meter.section(count.into(), || {
                (0..count).try_for_each(|_| runtime.block_on(one()))
            })?;
            let ended = tasks.try_join_next();
            tasks.abort_all();
            match ended {
                None => Ok(()),
                Some(ended) => ended.context("a task")?.context("a listener"),
            }
        })
}
