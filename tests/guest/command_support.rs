//! Detecting which commands a kernel supports.

use std::sync::Arc;

use rdmacm_core::{AddressAbi, CmAddr, EventChannel, EventKind, Family, PortSpace};
use rdmacm_tests::{OldKernel, SECOND, Site, expect};
use rdmacm_tests_macros::case;

fn old_kernel() -> EventChannel {
    let device = Arc::new(OldKernel::new());
    let channel = EventChannel::options().ucma(device).open().unwrap();
    assert_eq!(channel.address_abi(), AddressAbi::AnyFamily);
    channel
}

fn resolve(site: &Site, channel: &EventChannel, destination: CmAddr) {
    let id = site.routed(channel, destination);
    let addresses = id.addresses().unwrap();
    assert_eq!(addresses.destination, Some(destination));
    assert_eq!(
        addresses.device.unwrap().look_up().unwrap().name,
        site.device
    );
    id.gids().unwrap();
    id.path_records().unwrap();
}

#[case]
fn an_old_kernel_gets_ip_only_commands(site: &Site) {
    let channel = old_kernel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(site.v4(0)).unwrap();
    // The kernel always had that command.
    assert_eq!(channel.address_abi(), AddressAbi::AnyFamily);
    assert!(id.addresses().unwrap().device.is_some());
    assert_eq!(channel.address_abi(), AddressAbi::IpOnly);
    resolve(site, &channel, site.v6(7471));
}

#[case]
fn a_query_detects_an_old_kernel(_site: &Site) {
    let channel = old_kernel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    assert_eq!(id.addresses().unwrap().source, None);
    assert_eq!(channel.address_abi(), AddressAbi::IpOnly);
}

#[case]
fn many_threads_detect_an_old_kernel_at_once(site: &Site) {
    for _ in 0..20 {
        let channel = old_kernel();
        let ids = [(); 4].map(|()| channel.create_id(PortSpace::TCP).unwrap());
        std::thread::scope(|scope| {
            for id in &ids {
                scope.spawn(|| {
                    id.bind(site.v4(0)).unwrap();
                    assert!(id.addresses().unwrap().device.is_some());
                });
            }
        });
        assert_eq!(channel.address_abi(), AddressAbi::IpOnly);
    }
}

#[case]
fn an_error_of_a_newer_kernel_stays_an_error(site: &Site) {
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(site.v4(0)).unwrap();
    // It is bound already.
    let error = id.bind(CmAddr::any(Family::Ib)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert_eq!(channel.address_abi(), AddressAbi::AnyFamily);
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
}
