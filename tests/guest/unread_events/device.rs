//! Events of devices and neighbours, which tests cause by changing the guest's network.

use rdmacm_core::{CmAddr, EventKind};
use rdmacm_tests::Site;

use super::{Kept, ORDERS, in_every_order};
use crate::link::{Link, run};
use rdmacm_tests_macros::case;

#[case(alone, covers(DEVICE_REMOVAL))]
fn device_removal_outlives_its_id(site: &Site) {
    in_every_order(site, |site| {
        let link = Link::new(site);
        let (channel, id) = site.id();
        id.bind(link.address).unwrap();
        link.remove_device();
        Kept::next(EventKind::DeviceRemoval, id, channel, (), link)
    });
}

/// Makes a bond use another interface, whose hardware address differs: once, because
/// siw of Linux 6.1 serves no new ids with the other address.
#[case(alone, covers(ADDR_CHANGE))]
fn addr_change_outlives_its_id(site: &Site) {
    let link = Link::bonded(site);
    let mut bound: Vec<_> = ORDERS.iter().map(|_| site.id()).collect();
    for (_, id) in &bound {
        id.bind(link.address).unwrap();
    }
    link.fail_over();
    in_every_order(site, |_| {
        let (channel, id) = bound.pop().unwrap();
        Kept::next(EventKind::AddrChange, id, channel, (), ())
    });
}

/// A resolved id gets the event of its path's neighbour.
#[case(alone, needs(NeighbourUpdates))]
fn a_changed_neighbour_is_unreachable(site: &Site) {
    let link = Link::new(site);
    let ip = link.neighbour();
    let mut last = 0;
    let mut change = || {
        last += 1;
        run(&format!(
            "ip neigh replace {ip} lladdr 02:71:47:00:00:{last:02x} dev {} nud permanent",
            link.netdev
        ));
    };
    in_every_order(site, |site| {
        change();
        let channel = site.channel();
        let id = site.routed(&channel, CmAddr::from((ip, 7471)));
        change();
        Kept::next(EventKind::Unreachable, id, channel, (), ())
    });
}
