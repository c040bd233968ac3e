//! The arguments of `rdmacm ping`.

use super::ServerArgs;
use super::peer::{PeerArgs, Role};
use super::{Milliseconds, any_milliseconds, milliseconds};
use crate::ping::{MAX_SIZE, MIN_SIZE};

#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    peer: PeerArgs,
    /// The server's port. With --listen 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 7174)]
    pub(crate) port: u16,
    /// Stop after N pings instead of when interrupted. For a server: a client that
    /// disconnects earlier has failed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
    /// Bytes of a ping.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 64,
        conflicts_with = "listen"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(i64::from(MIN_SIZE)..=i64::from(MAX_SIZE)))]
    pub(crate) size: u32,
    /// Compare what came back with what was sent.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) validate: bool,
    /// How long to wait between two pings.
    #[arg(long, value_name = "MS", value_parser = any_milliseconds, conflicts_with = "listen")]
    #[arg(default_value = "1000")]
    pub(crate) interval: Milliseconds,
    /// How long connecting, and each ping, may take.
    #[arg(long, value_name = "MS", value_parser = milliseconds, conflicts_with = "listen")]
    #[arg(default_value = "10000")]
    pub(crate) timeout: Milliseconds,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON document, at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

impl PingArgs {
    /// The role of this side.
    pub(crate) fn role(&self) -> Role<'_> {
        self.peer.role(self.port)
    }

    /// Why the arguments contradict each other; a usage error.
    pub(crate) fn contradiction(&self) -> Option<String> {
        self.role().contradiction(self.port)
    }
}
