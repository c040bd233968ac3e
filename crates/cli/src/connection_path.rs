//! The addresses and the device of a connection.

use std::fmt;
use std::net::SocketAddr;

use rdmacm::core::CmAddr;
use rdmacm::tokio::{CmConnection, RdmaStream};
use serde::Serialize;

use crate::endpoint::Endpoint;

/// The addresses and the device of a connection; empty before there is one.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ConnectionPath {
    peer: Option<String>,
    source: Option<String>,
    device: Option<String>,
}

impl ConnectionPath {
    pub(crate) fn of_connection(connection: &CmConnection<Endpoint>) -> Self {
        let text = |address: CmAddr| address.to_string();
        let context = connection.queue_pair().queue_pair().context();
        Self {
            peer: connection.peer_addr().ok().map(text),
            source: connection.local_addr().ok().map(text),
            device: Some(context.device_name().to_owned()),
        }
    }

    pub(crate) fn of_stream(stream: &RdmaStream) -> Self {
        let text = |address: SocketAddr| address.to_string();
        Self {
            peer: stream.peer_addr().ok().map(text),
            source: stream.local_addr().ok().map(text),
            device: Some(stream.device_name().to_owned()),
        }
    }

    /// Whether there has been a connection.
    pub(crate) fn is_known(&self) -> bool {
        self.device.is_some()
    }
}

impl fmt::Display for ConnectionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [peer, source, device] =
            [&self.peer, &self.source, &self.device].map(|one| one.as_deref().unwrap_or("?"));
        write!(f, "{peer} from {source} via {device}")
    }
}
