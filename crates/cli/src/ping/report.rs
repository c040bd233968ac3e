//! The report of the client.

use std::time::{Duration, Instant};

use rdmacm::tokio::CmConnection;
use serde::Serialize;

use crate::args::PingArgs;
use crate::connection_path::ConnectionPath;
use crate::endpoint::Endpoint;
use crate::interrupt::Interrupt;
use crate::latencies::{Latencies, Summary, time};
use crate::outcome::Outcome;
use crate::until_closed::WorkError;

/// The results so far.
pub(super) struct ClientReport {
    document: ClientDocument,
    latencies: Latencies,
    /// When the first ping began, and the last one had come back.
    period: Option<(Instant, Instant)>,
    count: Option<u32>,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct ClientDocument {
    role: &'static str,
    node: String,
    #[serde(flatten)]
    path: ConnectionPath,
    /// Bytes of each ping.
    size: u32,
    validated: bool,
    /// Successful pings.
    pings: u64,
    elapsed_ns: u64,
    interrupted: bool,
    /// Why a ping failed.
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
                path: ConnectionPath::default(),
                size: args.size,
                validated: args.validate,
                pings: 0,
                elapsed_ns: 0,
                interrupted: false,
                error: None,
                latency_ns: None,
            },
            latencies: Latencies::new(),
            period: None,
            count: args.count,
        }
    }

    pub(super) fn unconnected(&mut self, stop: &WorkError) {
        self.document.interrupted = matches!(stop, WorkError::Interrupted);
        self.document.error = Some(match stop {
            WorkError::Interrupted => "interrupted before there was a connection".to_owned(),
            stop => stop.to_string(),
        });
    }

    pub(super) fn connected(&mut self, connection: &CmConnection<Endpoint>) {
        self.document.path = ConnectionPath::of_connection(connection);
    }

    pub(super) fn came_back(&mut self, began: Instant, taken: Duration) {
        self.document.pings += 1;
        let (first, _) = self.period.unwrap_or((began, began));
        self.period = Some((first, began + taken));
        self.latencies.add(taken);
    }

    /// No more pings.
    pub(super) fn over(&mut self, done: Result<(), WorkError>, interrupt: &Interrupt) {
        let elapsed = self
            .period
            .map_or(0, |(first, last)| (last - first).as_nanos());
        let document = &mut self.document;
        document.elapsed_ns = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let pings = document.pings;
        // Also if the ping in progress has failed. One that completes the count ends by that.
        document.interrupted = interrupt.is_set() && done.is_err();
        document.error = match (done, self.count) {
            (Ok(()), _) => None,
            (Err(WorkError::Interrupted), None) if pings > 0 => None,
            (Err(stop), None) => Some(format!("{stop} after {pings} pings")),
            (Err(stop), Some(count)) => Some(format!("{stop} after {pings} of {count} pings")),
        };
    }

    pub(super) fn outcome(mut self, args: &PingArgs) -> Outcome {
        self.document.latency_ns = self.latencies.summary();
        let document = &self.document;
        Outcome::of_report(
            args.json,
            document,
            document.error.as_ref(),
            ClientDocument::render,
        )
    }
}

impl ClientDocument {
    fn render(&self) -> String {
        let Some(latency) = self.latency_ns else {
            return String::new();
        };
        let (path, pings, size) = (&self.path, self.pings, self.size);
        let elapsed = time(self.elapsed_ns.into());
        let right = if self.validated { ", validated" } else { "" };
        format!(
            "{path}: {pings} pings of {size} bytes in {elapsed}{right}\n{}",
            latency.table()
        )
    }
}
