//! The GIDs of a port.

use std::net::Ipv4Addr;

use rdmacm_core::Gid;
use rdmacm_tests::{Site, Soft};
use rdmacm_tests_macros::case;
use rdmacm_verbs::Error;

#[case]
fn the_gid_of_an_address_is_in_the_table(site: &Site) {
    let context = site.verbs();
    let gids = context.gids(1).unwrap();
    let (channel, destination) = (site.channel(), site.v4(7));
    let id = site.resolved(&channel, destination);
    let local = id.gids().unwrap().source;
    let entry = gids.iter().find(|entry| entry.gid == local).unwrap();
    assert_eq!(context.gid(1, entry.index).unwrap().as_ref(), Some(entry));
    match site.soft {
        Soft::Rxe => {
            assert_eq!(local, Gid::from(Ipv4Addr::to_ipv6_mapped(&site.v4)));
            assert_eq!(entry.kind.as_deref(), Some("RoCE v2"));
            assert_eq!(entry.interface.as_deref(), Some(site.netdev));
            let last = context.port(1).unwrap().gid_table_len - 1;
            assert_eq!(context.gid(1, last).unwrap(), None);
        }
        Soft::Siw => {
            assert_eq!(gids.len(), 1);
            // As the kernel calls what is no RoCE v2.
            assert_eq!(entry.kind.as_deref(), Some("IB/RoCE v1"));
        }
    }
}

#[case]
fn a_nonexistent_index_is_an_error(site: &Site) {
    let context = site.verbs();
    let error = context.gid(2, 0).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    assert!(matches!(error, Error::Gids { port: 2, .. }), "{error}");
    assert!(context.gid(1, u32::MAX).is_err());
    assert!(context.gids(9).is_err());
}
