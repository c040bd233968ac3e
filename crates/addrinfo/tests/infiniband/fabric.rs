//! Two hosts, and a resolver that asks the kernel of one.

use rdmacm_addrinfo::AddrInfoResolver;
use rdmacm_core::{EventChannel, Gid, Result, ServiceRecord};
use rdmacm_sim::{Adapter, Fabric, Host, Port};
use std::sync::Arc;

pub(crate) const HERE: &str = "fe80::1";
pub(crate) const THERE: &str = "fe80::2";
pub(crate) const SERVICE: u64 = 0x1000_0000_0000_7147;

pub(crate) fn gid(text: &str) -> Gid {
    text.parse().unwrap()
}

/// A host with a port, and a peer that offers the service.
pub(crate) fn fabric() -> (Fabric, Host) {
    let fabric = Fabric::new();
    let [here, _there] = [HERE, THERE]
        .map(|port| fabric.host([Adapter::infiniband("mlx5_0").port(Port::new(gid(port)))]));
    let mut storage = ServiceRecord::new(SERVICE, gid(THERE));
    storage.name = "storage".try_into().unwrap();
    fabric.register_service(storage);
    (fabric, here)
}

pub(crate) fn channel(host: &Host) -> Result<EventChannel> {
    let device = host.open().unwrap();
    let devices = Arc::new(host.clone());
    EventChannel::options().ucma(device).devices(devices).open()
}

/// Asks this host's kernel.
pub(crate) fn resolver(host: &Host) -> AddrInfoResolver {
    let host = host.clone();
    AddrInfoResolver::new().channels(move || channel(&host))
}
