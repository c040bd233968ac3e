//! What is measured: each workload with its group and what it is compared with.

use rdmacm_init::bench::{Group, StableCounts};

use crate::work::{self, Workload};

/// The devices on which a workload is worth its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    /// It is the same on every device.
    One,
    /// Each has a driver of its own.
    All,
}

/// A workload that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) workload: &'static str,
    pub(crate) group: Group,
    pub(crate) devices: Devices,
    /// The number of operations.
    pub(crate) count: u32,
    pub(crate) counts: StableCounts,
    /// Whether it is a process as a whole instead of a workload.
    pub(crate) process: bool,
    /// How often it is timed at most.
    pub(crate) rounds: u32,
    /// The workload of the C program that does the same.
    pub(crate) c: Option<&'static str>,
    /// The workload that makes the same calls and nothing else.
    pub(crate) bare: Option<&'static str>,
    /// The workload that does the same by TCP.
    pub(crate) tcp: Option<&'static str>,
    /// The bytes that an operation transfers, if that is what it is about.
    pub(crate) bytes: Option<u32>,
    /// Whether the peer is of this library for the C program, too.
    pub(crate) has_own_peer: bool,
    /// Whether what the operations make is kept: memory is looked at.
    pub(crate) is_kept: bool,
}

impl Measure {
    const fn new(group: Group, workload: &'static str, count: u32) -> Self {
        Self {
            workload,
            group,
            devices: Devices::All,
            count,
            counts: StableCounts::Exact,
            process: false,
            rounds: u32::MAX,
            c: Some(workload),
            bare: None,
            tcp: None,
            bytes: None,
            has_own_peer: false,
            is_kept: false,
        }
    }

    const fn on_one_device(mut self) -> Self {
        self.devices = Devices::One;
        self
    }

    const fn counts(mut self, counts: StableCounts) -> Self {
        self.counts = counts;
        self
    }

    /// A process from its start to its end.
    const fn process(mut self) -> Self {
        self.counts = StableCounts::Nothing;
        self.process = true;
        self
    }

    /// It takes many seconds.
    const fn once(mut self) -> Self {
        self.counts = StableCounts::Nothing;
        self.rounds = 1;
        self
    }

    /// It takes seconds.
    const fn slow(mut self) -> Self {
        self.counts = StableCounts::Nothing;
        self.rounds = 3;
        self
    }

    const fn c(mut self, workload: Option<&'static str>) -> Self {
        self.c = workload;
        self
    }

    const fn bare(mut self, workload: &'static str) -> Self {
        self.bare = Some(workload);
        self
    }

    const fn tcp(mut self, workload: &'static str) -> Self {
        self.tcp = Some(workload);
        self
    }

    const fn bytes(mut self, bytes: u32) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// A process of librdmacm 44 that accepts more than five rsockets hangs: its thread that
    /// watches them polls an array whose end it has not written.
    const fn with_own_peer(mut self) -> Self {
        self.has_own_peer = true;
        self
    }

    const fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    /// What it does.
    pub(crate) fn workload(&self) -> anyhow::Result<&'static Workload> {
        work::find(self.workload)
    }
}

const KIB_64: u32 = 64 << 10;
const MIB: u32 = 1 << 20;

/// How many round trips a task may do at once. Each takes two units of tokio's budget, of which
/// there are 128; with more, a task whose replies are all there is deferred, and tokio allocates.
const IN_TURN: u32 = 48;

/// All measures, in the order of the report.
pub(crate) const MEASURES: &[Measure] = &[
    Measure::new(Group::ColdStart, "first-address", 1)
        .on_one_device()
        .process(),
    Measure::new(Group::ColdStart, "first-address-static", 1)
        .on_one_device()
        .process()
        .c(None),
    Measure::new(Group::Ids, "id", 64)
        .on_one_device()
        .counts(StableCounts::Calls)
        .bare("bare-id"),
    Measure::new(Group::Ids, "id-create", 64)
        .on_one_device()
        .bare("bare-id-create"),
    Measure::new(Group::Ids, "id-destroy", 64)
        .on_one_device()
        .bare("bare-id-destroy"),
    Measure::new(Group::Names, "resolve-numeric", 32)
        .on_one_device()
        .counts(StableCounts::Calls)
        .bare("bare-resolve-numeric"),
    Measure::new(Group::Events, "event", 64)
        .on_one_device()
        .bare("bare-event"),
    Measure::new(Group::Connections, "connect", 32).counts(StableCounts::Varying),
    Measure::new(Group::Connections, "connect-messages", 32).counts(StableCounts::Varying),
    Measure::new(Group::Connections, "connect-tokio", 32)
        .counts(StableCounts::Varying)
        .c(Some("connect")),
    Measure::new(Group::Connections, "connect-64-at-once", 256)
        .on_one_device()
        .slow(),
    Measure::new(Group::DataPath, "post-send", 256),
    Measure::new(Group::DataPath, "poll-send", 256),
    Measure::new(Group::DataPath, "poll-sends", 256)
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::DataPath, "post-receive", 256),
    Measure::new(Group::DataPath, "next-completion", 64).counts(StableCounts::Allocations),
    Measure::new(Group::DataPath, "next-completion-late", 64)
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::Messages, "round-trip", 64).counts(StableCounts::Allocations),
    Measure::new(Group::Messages, "round-trip-tokio", IN_TURN)
        .counts(StableCounts::Allocations)
        .c(Some("round-trip")),
    Measure::new(Group::Messages, "round-trip-tokio-sleeping", IN_TURN)
        .counts(StableCounts::Allocations)
        .c(None),
    Measure::new(Group::Messages, "round-trip-late", 64)
        .counts(StableCounts::Allocations)
        .c(None),
    Measure::new(Group::Messages, "round-trip-late-tokio", IN_TURN)
        .counts(StableCounts::Allocations)
        .c(None),
    Measure::new(Group::Streams, "round-trip-stream", 64)
        .counts(StableCounts::Allocations)
        .tcp("tcp-round-trip"),
    Measure::new(Group::Streams, "round-trip-stream-late", 64).counts(StableCounts::Allocations),
    Measure::new(Group::Streams, "stream-64", 512)
        .counts(StableCounts::Allocations)
        .tcp("tcp-64"),
    Measure::new(Group::Streams, "stream-64k", 64)
        .counts(StableCounts::Varying)
        .tcp("tcp-64k")
        .bytes(KIB_64),
    Measure::new(Group::Streams, "stream-1m", 16)
        .counts(StableCounts::Varying)
        .tcp("tcp-1m")
        .bytes(MIB),
    Measure::new(Group::Streams, "idle-streams", 16)
        .slow()
        .with_own_peer()
        .kept(),
    Measure::new(Group::Streams, "idle-streams-small", 16)
        .slow()
        .with_own_peer()
        .kept(),
    Measure::new(Group::Streams, "idle-streams-shared", 16)
        .on_one_device()
        .slow()
        .with_own_peer()
        .kept()
        .c(Some("idle-streams-small")),
    // On siw a process of librdmacm does not open as many.
    Measure::new(Group::Streams, "idle-streams-1000", 1000)
        .on_one_device()
        .once()
        .with_own_peer()
        .kept()
        .tcp("tcp-idle"),
    Measure::new(Group::Throughput, "send-64k", 32)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(KIB_64),
    Measure::new(Group::Throughput, "write-64k", 32)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(KIB_64),
    Measure::new(Group::Throughput, "read-64k", 32)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(KIB_64),
    Measure::new(Group::Throughput, "send-1m", 8)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(MIB),
    Measure::new(Group::Throughput, "write-1m", 8)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(MIB),
    Measure::new(Group::Throughput, "read-1m", 8)
        .slow()
        .counts(StableCounts::Varying)
        .bytes(MIB),
    Measure::new(Group::Memory, "idle-ids", 1000)
        .on_one_device()
        .kept(),
    // From 36 connections on, the C library fails to create a completion queue on siw.
    Measure::new(Group::Memory, "idle-connections", 32)
        .slow()
        .kept(),
    Measure::new(Group::Memory, "idle-connections-messages", 16)
        .slow()
        .kept(),
    Measure::new(Group::Growth, "id-at-10", 64)
        .on_one_device()
        .counts(StableCounts::Calls),
    Measure::new(Group::Growth, "id-at-100", 64)
        .on_one_device()
        .counts(StableCounts::Calls),
    Measure::new(Group::Growth, "id-at-1000", 64)
        .on_one_device()
        .counts(StableCounts::Calls),
    Measure::new(Group::Growth, "id-at-10000", 64)
        .on_one_device()
        .counts(StableCounts::Varying),
    Measure::new(Group::Growth, "queue-pair-100", 64)
        .on_one_device()
        .c(None),
    Measure::new(Group::Growth, "queue-pair-1000", 64)
        .on_one_device()
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::Growth, "queue-pair-10000", 256)
        .on_one_device()
        .once()
        .c(None),
    Measure::new(Group::Growth, "connect-at-10", 32)
        .on_one_device()
        .slow(),
    Measure::new(Group::Growth, "connect-at-100", 32)
        .on_one_device()
        .slow(),
    Measure::new(Group::Growth, "connect-at-1000", 64)
        .on_one_device()
        .once(),
    Measure::new(Group::Growth, "connect-at-10000", 64)
        .on_one_device()
        .once(),
    Measure::new(Group::Growth, "waiters-10", 32)
        .on_one_device()
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::Growth, "waiters-100", 32)
        .on_one_device()
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::Growth, "waiters-1000", 32)
        .on_one_device()
        .counts(StableCounts::Varying)
        .c(None),
    Measure::new(Group::Growth, "waiters-10000", 256)
        .on_one_device()
        .once()
        .c(None),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_measured_once() {
        for workload in work::all() {
            let measures = |measure: &&Measure| {
                let names = [Some(measure.workload), measure.bare, measure.tcp];
                names.contains(&Some(workload.name))
            };
            let times = MEASURES.iter().filter(measures).count();
            assert_eq!(times, 1, "{}", workload.name);
        }
    }

    #[test]
    fn every_measure_has_its_workloads() {
        for measure in MEASURES.iter().filter(|measure| !measure.process) {
            let names = [Some(measure.workload), measure.bare, measure.tcp];
            for name in names.into_iter().flatten() {
                assert!(work::find(name).is_ok(), "{name}");
            }
        }
    }
}
