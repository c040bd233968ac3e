//! The limits of a server.

use clap::value_parser;

/// Whether a server serves one client, or any number until it is interrupted.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Serve any number of clients until interrupted, several at once.
    #[arg(long, conflicts_with = "node")]
    pub(crate) persistent: bool,
    /// Serve at most N clients at once, and reject the others; each client uses
    /// registered memory.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "persistent")]
    // The requirement is waived where `--persistent` is not allowed.
    #[arg(conflicts_with = "node", value_parser = value_parser!(u32).range(1..))]
    max_clients: u32,
}

impl ServerArgs {
    /// How many clients are served at once.
    pub(crate) fn max_clients(self) -> usize {
        usize::try_from(self.max_clients).unwrap_or(usize::MAX)
    }
}
