//! Opening devices.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rdmacm_core::{DeviceId, DriverId, Guid, PathMtu, PortState, Transport};
use rdmacm_tests::{Site, Soft};
use rdmacm_verbs::{CommandNumber, Context, Error};

use crate::child;
use rdmacm_tests_macros::case;

fn driver(site: &Site) -> (DriverId, u32) {
    match site.soft {
        Soft::Rxe => (DriverId::RXE, 2),
        Soft::Siw => (DriverId::SIW, 1),
    }
}

#[case]
fn netlink_names_the_node(site: &Site) {
    let node = site.rdma_device().uverbs_node().unwrap().unwrap();
    let class = format!("/sys/class/infiniband_verbs/{}", node.name);
    let read = |file: &str| fs::read_to_string(format!("{class}/{file}")).unwrap();
    assert_eq!(read("ibdev").trim(), site.device);
    assert_eq!(read("abi_version").trim(), node.abi_version.to_string());
    assert_eq!(fs::metadata(node.path()).unwrap().rdev(), node.number);
    let (driver, abi_version) = driver(site);
    assert_eq!((node.driver, node.abi_version), (driver, abi_version));
}

#[case]
fn a_device_opens(site: &Site) {
    let context = site.verbs();
    assert_eq!(context.device_name(), site.device);
    assert_eq!(context.driver(), driver(site).0);
    assert_eq!(context.transport(), site.rdma_device().transport);
}

#[case]
fn the_device_of_an_id_opens(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(0)).unwrap();
    let device = id.addresses().unwrap().device.unwrap();
    let context = Context::open_by_id(device).unwrap();
    assert_eq!(context.device_name(), site.device);
}

#[case]
fn a_removed_device_does_not_open(site: &Site) {
    let mut device = site.rdma_device();
    device.index = Some(u32::MAX - 1);
    let error = Context::open(&device).unwrap_err();
    assert!(matches!(error, Error::NoNode { .. }), "{error}");
    let guid = Guid(0x1122_3344_5566_7788);
    let index = device.index;
    let error = Context::open_by_id(DeviceId { index, guid }).unwrap_err();
    assert!(error.to_string().contains("1122:3344:5566:7788"), "{error}");
}

#[case]
fn limits_are_sane(site: &Site) {
    let context = site.verbs();
    let limits = context.limits();
    assert_eq!(limits.node_guid, site.rdma_device().guid);
    assert_eq!(limits.port_count, 1);
    for limit in [
        limits.max_qp,
        limits.max_cq,
        limits.max_pd,
        limits.max_cqe,
        limits.max_mr,
        limits.max_srq,
        limits.max_srq_wr,
    ] {
        assert!(limit >= 100, "{limits:?}");
    }
    assert!(limits.max_qp_wr >= 1000, "{limits:?}");
    for sg_list in [limits.max_sge, limits.max_srq_sge] {
        assert!((1..=1000).contains(&sg_list), "{limits:?}");
    }
    let depths = limits.depths();
    assert_eq!(u32::from(depths.responder_resources), limits.max_qp_rd_atom);
    assert!(depths.responder_resources >= 16 && depths.initiator_depth >= 16);
}

#[case]
fn a_port_reports_its_state(site: &Site) {
    let port = site.verbs().port(1).unwrap();
    assert_eq!(port.state, PortState::ACTIVE);
    assert!(port.active_mtu >= PathMtu::B256 && port.active_mtu <= port.max_mtu);
    assert!(port.max_message_size >= 1 << 20, "{port:?}");
    assert!(port.gid_table_len >= 1, "{port:?}");
    assert_eq!(site.soft == Soft::Rxe, port.gid_table_len > 1);
}

#[case]
fn a_nonexistent_port_is_refused(site: &Site) {
    let context = site.verbs();
    for number in [0, 2, u8::MAX] {
        let error = context.port(number).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        let Error::Command(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.command, CommandNumber::QUERY_PORT);
        assert!(error.to_string().contains("no port of this number"));
    }
}

#[case(alone)]
fn changed_credentials_are_explained(site: &Site) {
    child::run_at("verbs_changed_credentials", site);
}

#[case]
fn a_missing_node_is_explained(site: &Site) {
    child::run_at("verbs_missing_node", site);
}

#[case]
fn a_missing_permission_is_explained(site: &Site) {
    child::run_at("verbs_missing_permission", site);
}

#[case]
fn another_device_under_the_nodes_name_is_refused(site: &Site) {
    child::run_at("verbs_other_node", site);
}

#[case]
fn without_netlink_sysfs_finds_the_node(site: &Site) {
    let mut device = site.rdma_device();
    let by_netlink = device.uverbs_node().unwrap();
    device.index = None;
    assert_eq!(device.uverbs_node().unwrap(), by_netlink);
    let context = Context::open(&device).unwrap();
    assert_ne!(context.transport(), Transport::Unknown);
    device.guid = Guid(7);
    assert_eq!(device.uverbs_node().unwrap(), None);
}
