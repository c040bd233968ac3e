//! The peer: a server by name, or any client.

use std::net::SocketAddr;

use rdmacm::addrinfo::parse_numeric;

/// The peer.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PeerArgs {
    /// A host's name or IP address: connect to the server there.
    node: Option<String>,
    /// Be the server, and listen on this address, or on all addresses of both families.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "::")]
    #[arg(value_parser = address)]
    listen: Option<SocketAddr>,
}

/// The role of this side.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role<'a> {
    Client(&'a str),
    Server(SocketAddr),
}

impl PeerArgs {
    /// The role of this side, on this port.
    pub(crate) fn role(&self, port: u16) -> Role<'_> {
        match (self.listen, &self.node) {
            (Some(mut address), _) => {
                address.set_port(port);
                Role::Server(address)
            }
            // clap requires one of the two.
            (None, node) => Role::Client(node.as_deref().unwrap_or_default()),
        }
    }
}

impl Role<'_> {
    /// Why the port is invalid; a usage error. Only a server can leave the choice to the
    /// kernel.
    pub(crate) fn contradiction(self, port: u16) -> Option<String> {
        (matches!(self, Self::Client(_)) && port == 0)
            .then(|| "--port 0 is for --listen: a client needs the port of its server".to_owned())
    }
}

/// A numeric address without a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    parse_numeric(text).ok_or_else(|| "not an IP address of a known scope".to_owned())
}
