//! The arguments of `rdmacm perf`.

use std::time::Duration;

use super::ServerArgs;
use super::peer::{PeerArgs, Role};
use super::{Milliseconds, milliseconds};
use crate::perf::{MAX_AT_ONCE, MAX_DEPTH, MAX_SIZE, Parameters, Test};

#[derive(Debug, clap::Args)]
pub(crate) struct PerfArgs {
    #[command(flatten)]
    peer: PeerArgs,
    /// The server's port. With --listen 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 7175)]
    pub(crate) port: u16,
    /// What to measure: bandwidth, or latency.
    #[arg(long, value_enum, default_value = "send-bw", conflicts_with = "listen")]
    test: Test,
    /// Bytes of a message; 65536 for bandwidth and 64 for latency unless given.
    #[arg(long, value_name = "BYTES", conflicts_with = "listen")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SIZE)))]
    size: Option<u32>,
    /// Requests in flight, for bandwidth of messages, writes and reads; 16 unless given.
    /// Latency is measured with one request at a time.
    #[arg(long, value_name = "N", conflicts_with = "listen")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: Option<u32>,
    /// How long to measure, after a tenth of it to warm up.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "2000", conflicts_with = "listen")]
    duration: Milliseconds,
    /// Measure N messages instead, after a warm-up of a tenth of N.
    #[arg(long, value_name = "N", conflicts_with_all = ["listen", "duration"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Poll for completions instead of sleeping, on both sides.
    #[arg(long, conflicts_with = "listen")]
    poll: bool,
    /// How long connecting may take, and then the server's first answer.
    #[arg(long, value_name = "MS", value_parser = milliseconds, conflicts_with = "listen")]
    #[arg(default_value = "10000")]
    pub(crate) timeout: Milliseconds,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON document, at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    Messages(u64),
    Time(Duration),
}

impl PerfArgs {
    /// The role of this side.
    pub(crate) fn role(&self) -> Role<'_> {
        self.peer.role(self.port)
    }

    /// The parameters of the test.
    pub(crate) fn parameters(&self) -> Parameters {
        let is_latency = self.test.is_latency();
        let is_one_by_one = is_latency || self.test.is_of_stream();
        Parameters {
            test: self.test,
            size: self.size.unwrap_or(if is_latency { 64 } else { 65536 }),
            depth: self.depth.unwrap_or(if is_one_by_one { 1 } else { 16 }),
            poll: self.poll,
        }
    }

    pub(crate) fn goal(&self) -> Goal {
        match self.count {
            Some(count) => Goal::Messages(count),
            None => Goal::Time(self.duration.0),
        }
    }

    /// Why the arguments contradict each other; a usage error.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let test = self.test.name();
        if self.test.is_of_stream() && (self.depth.is_some() || self.poll) {
            return Some(format!(
                "--depth and --poll are not for a stream, as in {test}"
            ));
        }
        if self.test.is_latency() && self.depth.is_some() {
            return Some(format!("--depth is for bandwidth, and {test} is latency"));
        }
        let Parameters { size, depth, .. } = self.parameters();
        if u64::from(size) * u64::from(depth) > MAX_AT_ONCE {
            return Some(format!(
                "--size times --depth is more than {MAX_AT_ONCE} bytes"
            ));
        }
        self.role().contradiction(self.port)
    }
}
