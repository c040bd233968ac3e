//! The networks that guests have: one that leads nowhere, or wires to another
//! guest.

use std::fmt::Write as _;

use rdmacm_init::Network;

/// A veth pair with an RDMA device on its near end.
struct Device {
    name: &'static str,
    kind: &'static str,
    near: &'static str,
    far: &'static str,
    ipv4: &'static str,
    ipv6: &'static str,
}

const DEVICES: [Device; 2] = [
    Device {
        name: "rxe0",
        kind: "rxe",
        near: "vrxe0",
        far: "vrxe1",
        ipv4: "10.71.1.1",
        ipv6: "fd71:1::1",
    },
    Device {
        name: "siw0",
        kind: "siw",
        near: "vsiw0",
        far: "vsiw1",
        ipv4: "10.71.2.1",
        ipv6: "fd71:2::1",
    },
];

/// A link with addresses and no RDMA device.
const PLAIN: (&str, &str, &str) = ("plain0", "10.71.3.1", "fd71:3::1");

/// Names of one address, of two families and of two devices, of a link without
/// RDMA, and of a neighbour that never answers.
const HOSTS: &str = "\
127.0.0.1 localhost
10.71.1.1 rxe
fd71:1::1 rxe6
10.71.2.1 siw
fd71:2::1 siw6
10.71.1.1 dual
fd71:1::1 dual
10.71.1.1 pair
10.71.2.1 pair
10.71.3.1 plain
10.71.1.77 silent
";

/// rxe and siw, each on a link of its own, and a link with neither.
pub(crate) fn standard() -> Network {
    let (mut links, mut rdma) = (String::from("link set lo up\n"), String::new());
    let mut interfaces = Vec::new();
    for Device {
        name,
        kind,
        near,
        far,
        ipv4,
        ipv6,
    } in DEVICES
    {
        // Writing to a string never fails.
        let _ = writeln!(links, "link add {near} type veth peer name {far}");
        links += &addresses(near, ipv4, ipv6);
        let _ = writeln!(links, "link set {far} up\nlink set {near} up");
        let _ = writeln!(rdma, "link add {name} type {kind} netdev {near}");
        interfaces.extend([near.to_owned(), far.to_owned()]);
    }
    let (plain, ipv4, ipv6) = PLAIN;
    let _ = writeln!(links, "link add {plain} type dummy");
    links += &addresses(plain, ipv4, ipv6);
    let _ = writeln!(links, "link set {plain} up");
    interfaces.push(plain.to_owned());
    Network {
        links,
        interfaces,
        rdma,
        devices: DEVICES.map(|device| device.name.to_owned()).to_vec(),
        hosts: HOSTS.to_owned(),
    }
}

/// An RDMA device on a network card of its own, because two on one interface
/// share their addresses, and the kernel takes whichever was there first.
struct Card {
    name: &'static str,
    kind: &'static str,
    interface: &'static str,
    /// Both addresses, for the last number.
    ipv4: &'static str,
    ipv6: &'static str,
}

const CARDS: [Card; 2] = [
    Card {
        name: "rxe0",
        kind: "rxe",
        interface: "eth0",
        ipv4: "10.71.8.",
        ipv6: "fd71:8::",
    },
    Card {
        name: "siw0",
        kind: "siw",
        interface: "eth1",
        ipv4: "10.71.9.",
        ipv6: "fd71:9::",
    },
];

/// One of two guests on the same wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Station {
    /// Host 1 of each wire's network.
    Near,
    /// Host 2.
    Far,
}

impl Station {
    /// The hardware addresses of its cards, of which RDMA devices make their
    /// GUIDs: another guest at this station has the same.
    pub(crate) const fn cards(self) -> &'static [&'static str; 2] {
        match self {
            Self::Near => &["52:54:00:71:08:01", "52:54:00:71:09:01"],
            Self::Far => &["52:54:00:71:08:02", "52:54:00:71:09:02"],
        }
    }

    /// The last number of its addresses.
    pub(crate) const fn host(self) -> u8 {
        match self {
            Self::Near => 1,
            Self::Far => 2,
        }
    }
}

/// rxe and siw, each on a wire of its own.
pub(crate) fn wired(station: Station) -> Network {
    let (mut links, mut rdma) = (String::from("link set lo up\n"), String::new());
    let host = station.host();
    for Card {
        name,
        kind,
        interface,
        ipv4,
        ipv6,
    } in CARDS
    {
        links += &addresses(
            interface,
            &format!("{ipv4}{host}"),
            &format!("{ipv6}{host}"),
        );
        // Writing to a string never fails.
        let _ = writeln!(links, "link set {interface} up");
        let _ = writeln!(rdma, "link add {name} type {kind} netdev {interface}");
    }
    Network {
        links,
        interfaces: CARDS.map(|card| card.interface.to_owned()).to_vec(),
        rdma,
        devices: CARDS.map(|card| card.name.to_owned()).to_vec(),
        hosts: "127.0.0.1 localhost\n".to_owned(),
    }
}

fn addresses(link: &str, ipv4: &str, ipv6: &str) -> String {
    format!("address add {ipv4}/24 dev {link}\naddress add {ipv6}/64 dev {link} nodad\n")
}
