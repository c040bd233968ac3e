//! Listening.

use std::net::TcpListener;

use rdmacm_core::{CmAddr, Family, PortSpace};
use rdmacm_tests::{Site, Soft, free_port};
use rdmacm_tests_macros::case;

/// Backlogs: 1, the kernel's maximum, the default, and more than the maximum.
#[case(each_abi, covers(LISTEN))]
fn any_backlog_listens(site: &Site) {
    let maximum = std::fs::read_to_string("/proc/sys/net/rdma_ucm/max_backlog").unwrap();
    let maximum: u32 = maximum.trim().parse().unwrap();
    for backlog in [0, 1, maximum, maximum + 1, u32::MAX] {
        let (_channel, id) = site.id();
        id.bind(site.v4(free_port())).unwrap();
        id.listen(backlog).unwrap();
    }
}

/// The kernel may choose a port that TCP uses, which iWARP needs too.
#[case(each_abi)]
fn an_unbound_id_is_bound_to_the_wildcard(site: &Site) {
    let listening = (0..16).find_map(|_| {
        let (channel, id) = site.id();
        match id.listen(1) {
            Ok(()) => Some((channel, id)),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE), "{error}");
                None
            }
        }
    });
    let (_channel, id) = listening.unwrap();
    let address = id.local_addr().unwrap().unwrap();
    assert_eq!(address.with_port(0), CmAddr::any(Family::V4));
    assert_ne!(address.port(), 0);
}

#[case(each_abi)]
fn both_wildcards_listen(site: &Site) {
    let port = free_port();
    let (channel, v6) = site.id();
    v6.bind(CmAddr::any(Family::V6).with_port(port)).unwrap();
    v6.set_af_only(true).unwrap();
    v6.listen(1).unwrap();
    let v4 = channel.create_id(PortSpace::TCP).unwrap();
    v4.bind(CmAddr::any(Family::V4).with_port(port)).unwrap();
    v4.listen(1).unwrap();
}

#[case(each_abi)]
fn a_second_listen_is_refused(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(free_port())).unwrap();
    id.listen(1).unwrap();
    let error = id.listen(1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("listens already"), "{error}");
}

#[case(each_abi)]
fn a_resolved_id_cannot_listen(site: &Site) {
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    let error = id.listen(1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[case(each_abi)]
fn a_listening_port_is_taken(site: &Site) {
    let port = free_port();
    let (channel, listener) = site.id();
    listener.bind(site.v4(port)).unwrap();
    listener.listen(1).unwrap();
    let late = channel.create_id(PortSpace::TCP).unwrap();
    let error = late.bind(site.v4(port)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
}

#[case(each_abi)]
fn iwarp_needs_the_tcp_port(site: &Site) {
    let port = free_port();
    let _tcp = TcpListener::bind((site.v4, port)).unwrap();
    let (_channel, id) = site.id();
    id.bind(site.v4(port)).unwrap();
    match (site.soft, id.listen(1)) {
        (Soft::Rxe, listening) => listening.unwrap(),
        (Soft::Siw, listening) => {
            let error = listening.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
            assert!(error.to_string().contains("TCP port"), "{error}");
        }
    }
}
