//! Posting and polling, with the simulation as the driver: it takes what the rings contain,
//! so the simulation's own work is part of every number.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark, whose simulated device answers everything"
)]

use rdmacm_core::{DeviceId, QpType, RdmaDevices};
use rdmacm_sim::Fabric;
use rdmacm_verbs::{Context, DeviceSource, QpCaps, QueuePair};

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
    QueuePair::options(QpType::UD)
        .caps(caps)
        .create(context)
        .unwrap()
}

#[divan::bench]
fn create_and_destroy(bencher: divan::Bencher<'_, '_>) {
    let context = context();
    bencher.bench_local(|| drop(queue_pair(&context)));
}

#[divan::bench]
fn poll_nothing(bencher: divan::Bencher<'_, '_>) {
    let queue_pair = queue_pair(&context());
    let queue = queue_pair.send_queue();
    bencher.bench_local(|| queue.poll().unwrap());
}
