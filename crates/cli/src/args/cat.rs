//! The arguments of `rdmacm cat`.

use super::peer::{PeerArgs, Role};
use super::{Milliseconds, milliseconds};

#[derive(Debug, clap::Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    peer: PeerArgs,
    /// The server's port. With --listen 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 7176)]
    pub(crate) port: u16,
    /// How long connecting may take.
    #[arg(long, value_name = "MS", value_parser = milliseconds, conflicts_with = "listen")]
    #[arg(default_value = "10000")]
    pub(crate) timeout: Milliseconds,
}

impl CatArgs {
    /// The role of this side.
    pub(crate) fn role(&self) -> Role<'_> {
        self.peer.role(self.port)
    }

    /// Why the arguments contradict each other; a usage error.
    pub(crate) fn contradiction(&self) -> Option<String> {
        self.role().contradiction(self.port)
    }
}
