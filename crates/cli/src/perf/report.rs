//! The report of the client.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::Test;
use crate::args::PerfArgs;
use crate::connection_path::ConnectionPath;
use crate::latencies::{Latencies, Summary, time};
use crate::outcome::Outcome;
use crate::until_closed::WorkError;

/// The results so far.
pub(super) struct ClientReport {
    document: Document,
    test: Test,
    latencies: Latencies,
    began: Option<Instant>,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    role: &'static str,
    node: String,
    #[serde(flatten)]
    path: ConnectionPath,
    test: &'static str,
    /// Bytes of each message.
    size: u32,
    /// Requests in flight.
    depth: u32,
    polled: bool,
    /// Without those of the warm-up.
    messages: u64,
    /// From the first until all had arrived.
    elapsed_ns: Option<u64>,
    messages_per_second: Option<f64>,
    /// Of messages, without what the transport adds.
    bytes_per_second: Option<f64>,
    latency_ns: Option<Summary>,
    interrupted: bool,
    /// Why the test failed.
    error: Option<String>,
}

impl ClientReport {
    pub(super) fn new(args: &PerfArgs, node: &str) -> Self {
        let parameters = args.parameters();
        Self {
            document: Document {
                role: "client",
                node: node.to_owned(),
                path: ConnectionPath::default(),
                test: parameters.test.name(),
                size: parameters.size,
                depth: parameters.depth,
                polled: parameters.poll,
                messages: 0,
                elapsed_ns: None,
                messages_per_second: None,
                bytes_per_second: None,
                latency_ns: None,
                interrupted: false,
                error: None,
            },
            test: parameters.test,
            latencies: Latencies::new(),
            began: None,
        }
    }

    pub(super) fn unconnected(&mut self, stop: &WorkError) {
        self.document.interrupted = matches!(stop, WorkError::Interrupted);
        self.document.error = Some(match stop {
            WorkError::Interrupted => "interrupted before there was a connection".to_owned(),
            stop => stop.to_string(),
        });
    }

    pub(super) fn connected(&mut self, path: ConnectionPath) {
        self.document.path = path;
    }

    /// The warm-up has ended: starts to count.
    pub(super) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Counts a message that took so long, and returns the count.
    pub(super) fn took(&mut self, taken: Duration) -> u64 {
        self.latencies.add(taken);
        self.done()
    }

    /// Counts a message, and returns the count.
    pub(super) fn done(&mut self) -> u64 {
        self.document.messages += 1;
        self.document.messages
    }

    /// All of them have arrived.
    pub(super) fn end(&mut self) {
        let Some(elapsed) = self.began.map(|began| began.elapsed()) else {
            return;
        };
        let document = &mut self.document;
        document.elapsed_ns = u64::try_from(elapsed.as_nanos()).ok();
        #[expect(clippy::cast_precision_loss, reason = "53 bits are enough to be shown")]
        let rate = document.messages as f64 / elapsed.as_secs_f64();
        document.messages_per_second = Some(rate);
        document.bytes_per_second = Some(rate * f64::from(document.size));
    }

    pub(super) fn over(&mut self, done: Result<(), WorkError>) {
        self.document.interrupted = matches!(done, Err(WorkError::Interrupted));
        let messages = self.document.messages;
        self.document.error = done
            .err()
            .map(|stop| format!("{stop} after {messages} messages"));
    }

    pub(super) fn outcome(mut self, args: &PerfArgs) -> Outcome {
        self.document.latency_ns = self.latencies.summary();
        let document = &self.document;
        let words = |_: &Document| self.render();
        Outcome::of_report(args.json, document, document.error.as_ref(), words)
    }

    fn render(&self) -> String {
        let document = &self.document;
        if !document.path.is_known() {
            return String::new();
        }
        let mut text = format!("{}: {}\n", document.path, self.parameters());
        text.extend(self.rate());
        if let Some(latency) = document.latency_ns {
            let (table, histogram) = (latency.table(), self.latencies.histogram());
            text.extend([table.as_str(), "\n", &histogram]);
        }
        text
    }

    /// The line of the rate, if the test ended.
    fn rate(&self) -> Option<String> {
        let document = &self.document;
        let (messages, elapsed) = (document.messages, time(document.elapsed_ns?.into()));
        let rate = document.messages_per_second?;
        let line = format!("{messages} messages in {elapsed}, {rate:.0} a second");
        if self.test.is_latency() {
            return Some(line + "\n");
        }
        let bytes = document.bytes_per_second?;
        let (bits, bytes) = (bytes * 8.0 / 1e9, bytes / 1e6);
        Some(format!("{line}: {bits:.3} Gbit/s, {bytes:.1} MB/s\n"))
    }

    fn parameters(&self) -> String {
        let Document {
            test, size, depth, ..
        } = self.document;
        let kind = match self.test {
            Test::SendLat | Test::WriteLat | Test::StreamLat => "there and back",
            Test::ReadLat => "request and response",
            Test::StreamBw => return format!("{test}, {size} bytes"),
            _ => return format!("{test}, {size} bytes, {depth} at once"),
        };
        format!("{test}, {size} bytes, {kind}")
    }
}
