//! Devices that go away, each on links of the test's own.

use std::process::Command;

use rdmacm_core::{CmAddr, EventKind, QpType, RdmaDevice};
use rdmacm_tests::{PATIENCE, Site, Soft, expect, free_port};
use rdmacm_verbs::{Context, Error, QueuePair};

crate::cases!("removal":
    an_id_hears_of_its_devices_removal,
    a_device_that_is_gone_has_no_name,
    a_device_goes_when_its_contexts_are_closed,
);

/// An RDMA device on an interface of its own, gone when dropped.
struct Link {
    device: String,
    netdev: String,
    address: CmAddr,
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status();
    assert!(status.unwrap().success(), "{command}");
}

impl Link {
    fn new(site: &Site) -> Self {
        let number = free_port();
        let kind = site.driver();
        let (device, netdev) = (format!("{kind}{number}"), format!("v{number}"));
        let [high, low] = number.to_be_bytes();
        let ip = format!("10.{high}.{low}.1");
        run(&format!(
            "ip link add {netdev} type veth peer name {netdev}p"
        ));
        run(&format!("ip addr add {ip}/24 dev {netdev}"));
        run(&format!("ip link set {netdev} up"));
        run(&format!("ip link set {netdev}p up"));
        run(&format!(
            "rdma link add {device} type {kind} netdev {netdev}"
        ));
        Self {
            device,
            netdev,
            address: CmAddr::from(([10, high, low, 1], 0)),
        }
    }

    fn remove_device(&self) {
        run(&format!("rdma link del {}", self.device));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        run(&format!("ip link del {}", self.netdev));
    }
}

fn an_id_hears_of_its_devices_removal(site: &Site) {
    let link = Link::new(site);
    let (channel, id) = site.id();
    id.bind(link.address).unwrap();
    link.remove_device();
    let event = channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::DeviceRemoval);
    assert!(event.failure().unwrap().to_string().contains("going away"));
    let error = id.listen(1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    assert!(error.to_string().contains("drop the id"), "{error}");
    drop(id);
    let ordinary = site.resolved(&channel, site.v4(7471));
    ordinary.resolve_route(rdmacm_tests::SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
}

/// Least of all the name of another device with the same GUID.
fn a_device_that_is_gone_has_no_name(site: &Site) {
    let link = Link::new(site);
    let twin = format!("twin{}", link.netdev);
    let other = match site.soft {
        Soft::Rxe => "siw",
        Soft::Siw => "rxe",
    };
    run(&format!(
        "rdma link add {twin} type {other} netdev {}",
        link.netdev
    ));
    let devices = RdmaDevice::list().unwrap();
    let find = |name: &str| devices.iter().find(|one| one.name == name).unwrap();
    let device = find(&link.device);
    assert_eq!(device.guid, find(&twin).guid);
    let id = rdmacm_core::DeviceId {
        index: device.index,
        guid: device.guid,
    };
    assert_eq!(id.look_up().unwrap().name, link.device);
    link.remove_device();
    assert_eq!(id.look_up(), None);
    assert!(device.ports().is_err());
}

/// Removing it may wait for them or make them useless, as the driver can.
fn a_device_goes_when_its_contexts_are_closed(site: &Site) {
    let link = Link::new(site);
    let devices = RdmaDevice::list().unwrap();
    let device = devices.iter().find(|one| one.name == link.device).unwrap();
    let context = Context::open(device).unwrap();
    let queue_pair = QueuePair::options(QpType::RC).create(&context).unwrap();
    let mut removal = Command::new("rdma")
        .args(["link", "del", &link.device])
        .spawn()
        .unwrap();
    drop((context, queue_pair));
    assert!(removal.wait().unwrap().success());
    let error = Context::open(device).unwrap_err();
    assert!(matches!(error, Error::NoNode { .. }), "{error}");
}
