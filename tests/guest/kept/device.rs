//! Events of devices and neighbours, which tests make by changing the guest's
//! network.

use std::net::Ipv4Addr;

use rdmacm_core::{CmAddr, EventKind};
use rdmacm_tests::Site;

use super::{Kept, in_every_order};
use crate::link::{Link, run};

crate::cases!("kept::device":
    device_removal,
    addr_change,
);

crate::cases!("kept::device" as ON_ROCE:
    a_neighbour_that_changed_is_unreachable,
);

fn device_removal(site: &Site) {
    in_every_order(site, |site| {
        let link = Link::new(site);
        let (channel, id) = site.id();
        id.bind(link.address).unwrap();
        link.remove_device();
        Kept::next(EventKind::DeviceRemoval, id, channel, (), link)
    });
}

/// A bond goes on with another interface, whose hardware address differs.
fn addr_change(site: &Site) {
    in_every_order(site, |site| {
        let link = Link::bonded(site);
        let (channel, id) = site.id();
        id.bind(link.address).unwrap();
        link.fail_over();
        let kept = Kept::next(EventKind::AddrChange, id, channel, (), ());
        link.remove_device();
        kept
    });
}

fn a_neighbour_that_changed_is_unreachable(site: &Site) {
    in_every_order(site, |site| {
        let link = Link::new(site);
        let neighbour = |last: u8| {
            let ip = link.address.to_string().replace(".1:0", ".9");
            run(&format!(
                "ip neigh replace {ip} lladdr 02:71:47:00:00:{last:02x} dev {} nud permanent",
                link.netdev
            ));
            ip.parse::<Ipv4Addr>().unwrap()
        };
        let ip = neighbour(1);
        let channel = site.channel();
        let id = site.routed(&channel, CmAddr::from((ip, 7471)));
        neighbour(2);
        Kept::next(EventKind::Unreachable, id, channel, (), link)
    });
}
