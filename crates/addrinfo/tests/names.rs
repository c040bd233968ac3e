//! Names of hosts with several addresses, on a simulated network.

use std::net::SocketAddr;
use std::sync::Arc;

use rdmacm_addrinfo::{AddrInfoResolver, Hints, Host, HostQuery, NameError, NameResolver};
use rdmacm_core::EventChannel;
use rdmacm_sim::Fabric;

/// Knows a host with a canonical name.
#[derive(Debug)]
struct Storage(Vec<SocketAddr>);

impl NameResolver for Storage {
    fn host(&self, _: &HostQuery<'_>) -> Result<Host, NameError> {
        Ok(Host {
            addresses: self.0.clone(),
            canonical_name: Some("storage-7.example".to_owned()),
        })
    }
}

#[test]
fn the_first_result_has_the_canonical_name() {
    let fabric = Fabric::roce(["client", "dead", "server"]);
    let [client, dead, server] = ["client", "dead", "server"].map(|name| fabric.find_host(name));
    let (client, dead, server) = (client.unwrap(), dead.unwrap(), server.unwrap());
    dead.set_link_up("rxe0", false);
    let addresses = [&dead, &server].map(|host| (host.address().unwrap(), 0).into());
    let open = move || {
        let options = EventChannel::options().ucma(client.open().unwrap());
        options.devices(Arc::new(client.clone())).open()
    };
    let addr_info_resolver = AddrInfoResolver::new().acm(None).channels(open);
    let addr_info_resolver = addr_info_resolver.name_resolver(Storage(addresses.to_vec()));
    let hints = Hints::rc().canonical_name();
    let found = addr_info_resolver
        .resolve("storage-7", "7471", &hints)
        .unwrap();
    let [first, second] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!(first.is_reachable() && !second.is_reachable());
    assert_eq!(first.canonical_name.as_deref(), Some("storage-7.example"));
    assert_eq!(second.canonical_name, None);
}
