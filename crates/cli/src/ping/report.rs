//! What came of the pings.

use std::time::{Duration, Instant};

use rdmacm::core::CmAddr;
use rdmacm::tokio::Connection;
use serde::Serialize;

use crate::Outcome;
use crate::args::PingArgs;
use crate::attend::Stop;
use crate::endpoint::Endpoint;
use crate::json;
use crate::latencies::{Latencies, Summary, time};

/// What the client knows.
pub(super) struct ClientReport {
    document: ClientDocument,
    latencies: Latencies,
    began: Instant,
    count: Option<u32>,
}

/// The whole answer.
#[derive(Debug, Serialize)]
struct ClientDocument {
    role: &'static str,
    node: String,
    peer: Option<String>,
    source: Option<String>,
    device: Option<String>,
    /// Bytes of each ping.
    size: u32,
    validated: bool,
    /// How many came back right.
    pings: u64,
    elapsed_ns: u64,
    interrupted: bool,
    /// Why not all came back right.
    error: Option<String>,
    /// Of one ping: two messages each way, a read and a write. In nanoseconds.
    latency_ns: Option<Summary>,
}

impl ClientReport {
    pub(super) fn new(args: &PingArgs, node: &str) -> Self {
        Self {
            document: ClientDocument {
                role: "client",
                node: node.to_owned(),
                peer: None,
                source: None,
                device: None,
                size: args.size,
                validated: args.validate,
                pings: 0,
                elapsed_ns: 0,
                interrupted: false,
                error: None,
                latency_ns: None,
            },
            latencies: Latencies::new(),
            began: Instant::now(),
            count: args.count,
        }
    }

    pub(super) fn unconnected(&mut self, error: &str) {
        self.document.error = Some(error.to_owned());
    }

    pub(super) fn connected(&mut self, connection: &Connection<Endpoint>) {
        let text = |address: Option<CmAddr>| address.map(|address| address.to_string());
        let document = &mut self.document;
        document.peer = connection.peer_addr().ok().and_then(text);
        document.source = connection.local_addr().ok().and_then(text);
        let context = connection.queue_pair().queue_pair().context();
        document.device = Some(context.device_name().to_owned());
        self.began = Instant::now();
    }

    pub(super) fn came_back(&mut self, taken: Duration) {
        self.document.pings += 1;
        self.latencies.add(taken);
    }

    /// No more pings.
    pub(super) fn over(&mut self, done: Result<(), Stop>) {
        let elapsed = self.began.elapsed().as_nanos();
        let document = &mut self.document;
        document.elapsed_ns = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let pings = document.pings;
        document.interrupted = matches!(done, Err(Stop::Interrupted));
        document.error = match (done, self.count) {
            (Ok(()), _) => None,
            (Err(Stop::Interrupted), None) if pings > 0 => None,
            (Err(stop), None) => Some(format!("{stop} after {pings} pings")),
            (Err(stop), Some(count)) => Some(format!("{stop} after {pings} of {count} pings")),
        };
    }

    pub(super) fn outcome(mut self, args: &PingArgs) -> Outcome {
        self.document.latency_ns = self.latencies.summary();
        let success = self.document.error.is_none();
        if args.json {
            return Outcome {
                output: json::render(&self.document),
                complaint: None,
                success,
            };
        }
        Outcome {
            output: self.document.render(),
            complaint: self.document.error,
            success,
        }
    }
}

impl ClientDocument {
    fn render(&self) -> String {
        let Some(latency) = self.latency_ns else {
            return String::new();
        };
        let unknown = || "?".to_owned();
        let [peer, source, device] =
            [&self.peer, &self.source, &self.device].map(|one| one.clone().unwrap_or_else(unknown));
        let (pings, size) = (self.pings, self.size);
        let elapsed = time(self.elapsed_ns.into());
        let right = if self.validated { ", validated" } else { "" };
        format!(
            "{peer} from {source} via {device}: {pings} pings of {size} bytes in {elapsed}{right}\n{}",
            latency.table()
        )
    }
}
