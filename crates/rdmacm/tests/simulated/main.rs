//! Messages between simulated hosts, through the whole library.
#![cfg(test)]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdmacm::core::EventChannel;
use rdmacm::{CLOSE_DEADLINE, Connection, Connector, Listener, Node};
use rdmacm_sim::{Fabric, Host};

mod messages;

const PORT: u16 = 7471;

/// A node of a simulated host.
fn node(host: &Host) -> Node {
    let channel = EventChannel::options().ucma(host.open().unwrap());
    let channel = channel.devices(Arc::new(host.clone()));
    let options = Node::options().channel(channel);
    options
        .device_source(Arc::new(host.clone()))
        .open()
        .unwrap()
}

/// Two hosts, of which the second listens.
struct Hosts {
    fabric: Fabric,
    client: Host,
    server: Host,
}

impl Hosts {
    fn roce() -> Self {
        let fabric = Fabric::roce(["client", "server"]).seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        Self {
            fabric,
            client,
            server,
        }
    }

    fn listen(&self) -> Listener {
        let address = (self.server.address().unwrap(), PORT);
        let options = Listener::options().with_node(&node(&self.server));
        options.bind(address).unwrap()
    }

    /// Two connected ends: the client's and the server's.
    fn connect(&self) -> (Connection, Connection) {
        let listener = self.listen();
        let accept = thread::spawn(move || {
            let incoming = listener.accept(None).unwrap();
            incoming.accept().unwrap()
        });
        let address = (self.server.address().unwrap(), PORT);
        let connector = Connector::new(address).with_node(&node(&self.client));
        let near = connector.connect().unwrap();
        (near, accept.join().unwrap())
    }
}
