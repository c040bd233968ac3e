//! Posting and polling, with the simulation as the driver: it takes what the rings contain,
//! so the simulation's own work is part of every number.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark, whose simulated device answers everything"
)]

use rdmacm_core::{DeviceId, QpAttr, QpAttrMask, QpState, QpType, RdmaDevices};
use rdmacm_sim::Fabric;
use rdmacm_verbs::{Context, DeviceSource, QpCaps, QueuePair, SgList};
use zerocopy::FromZeros as _;

fn main() {
    divan::main();
}

const RECEIVES: u32 = 256;

fn context() -> Context {
    let fabric = Fabric::roce(["here"]);
    let host = fabric.find_host("here").unwrap();
    let devices = host.list().unwrap();
    let device = DeviceId {
        index: devices[0].index,
        guid: devices[0].guid,
    };
    DeviceSource::open(&host, device).unwrap()
}

fn queue_pair(context: &Context) -> QueuePair {
    let caps = QpCaps {
        max_send_wr: 16,
        max_recv_wr: RECEIVES,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    QueuePair::options(QpType::RC)
        .caps(caps)
        .create(context)
        .unwrap()
}

#[divan::bench]
fn create_and_destroy(bencher: divan::Bencher<'_, '_>) {
    let context = context();
    bencher.bench_local(|| drop(queue_pair(&context)));
}

/// A queue pair that may receive, and memory for each request.
fn with_memory(context: &Context) -> (QueuePair, Vec<SgList>) {
    let queue_pair = queue_pair(context);
    let attr = QpAttr {
        qp_state: QpState::INIT,
        port_number: 1,
        ..QpAttr::new_zeroed()
    };
    let mask =
        QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS;
    queue_pair.modify(&attr, mask).unwrap();
    let domain = queue_pair.protection_domain();
    let memory = domain.allocate(RECEIVES as usize * 64).unwrap();
    let parts = memory.into_chunks(64).into_iter().map(SgList::from);
    (queue_pair, parts.collect())
}

/// Fills the receive queue of a new queue pair.
fn fill(bencher: divan::Bencher<'_, '_>, post: impl Fn(&QueuePair, Vec<SgList>)) {
    let context = context();
    bencher
        .counter(divan::counter::ItemsCount::new(RECEIVES))
        .with_inputs(|| with_memory(&context))
        .bench_local_values(|(queue_pair, memory)| {
            post(&queue_pair, memory);
            queue_pair
        });
}

/// One request after the other.
#[divan::bench]
fn post_receives(bencher: divan::Bencher<'_, '_>) {
    fill(bencher, |queue_pair, memory| {
        for part in memory {
            queue_pair.post_receive(part).unwrap();
        }
    });
}

/// All requests at once.
#[divan::bench]
fn post_receives_at_once(bencher: divan::Bencher<'_, '_>) {
    fill(bencher, |queue_pair, mut memory| {
        queue_pair.post_receives(&mut memory).unwrap();
    });
}

#[divan::bench]
fn poll_nothing(bencher: divan::Bencher<'_, '_>) {
    let queue_pair = queue_pair(&context());
    let queue = queue_pair.send_cq();
    bencher.bench_local(|| queue.poll().unwrap());
}
