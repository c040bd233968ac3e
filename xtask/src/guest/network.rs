//! The networks of guests: veth pairs within a single guest, or wires between two guests.

use std::fmt::Write as _;

use rdmacm_init::Network;

/// A veth pair with an RDMA device on one end.
struct Device {
    name: &'static str,
    kind: &'static str,
    interface: &'static str,
    peer: &'static str,
    ipv4: &'static str,
    ipv6: &'static str,
}

const DEVICES: [Device; 2] = [
    Device {
        name: "rxe0",
        kind: "rxe",
        interface: "vrxe0",
        peer: "vrxe1",
        ipv4: "10.71.1.1",
        ipv6: "fd71:1::1",
    },
    Device {
        name: "siw0",
        kind: "siw",
        interface: "vsiw0",
        peer: "vsiw1",
        ipv4: "10.71.2.1",
        ipv6: "fd71:2::1",
    },
];

/// A link with addresses but without an RDMA device.
const PLAIN: (&str, &str, &str) = ("plain0", "10.71.3.1", "fd71:3::1");

/// Names with one address, with addresses of two families, with addresses of two devices, of a
/// link without RDMA, and of a neighbor that never answers.
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

/// The network of a single guest: rxe and siw, each on its own link, and a link without RDMA.
pub(crate) fn one_guest() -> Network {
    let (mut links, mut rdma) = (String::from("link set lo up\n"), String::new());
    let mut interfaces = Vec::new();
    for Device {
        name,
        kind,
        interface,
        peer,
        ipv4,
        ipv6,
    } in DEVICES
    {
        // Writing to a string never fails.
        let _ = writeln!(links, "link add {interface} type veth peer name {peer}");
        links += &addresses(interface, ipv4, ipv6);
        let _ = writeln!(links, "link set {peer} up\nlink set {interface} up");
        let _ = writeln!(rdma, "link add {name} type {kind} netdev {interface}");
        interfaces.extend([interface.to_owned(), peer.to_owned()]);
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

/// A network card and its RDMA device. Each RDMA device has its own card: two on one interface
/// would have the same addresses, and the kernel would always use the first.
struct Card {
    name: &'static str,
    kind: &'static str,
    interface: &'static str,
    /// The addresses without their last number.
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

/// An end of the wires between two guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireEnd {
    /// The guest with host number 1.
    Near,
    /// The guest with host number 2.
    Far,
}

impl WireEnd {
    /// The MAC addresses of the guest's cards. RDMA devices make their GUIDs of them; another
    /// guest at the same end has the same.
    pub(crate) const fn mac_addresses(self) -> &'static [&'static str; 2] {
        match self {
            Self::Near => &["52:54:00:71:08:01", "52:54:00:71:09:01"],
            Self::Far => &["52:54:00:71:08:02", "52:54:00:71:09:02"],
        }
    }

    /// The last number of the guest's addresses.
    pub(crate) const fn host(self) -> u8 {
        match self {
            Self::Near => 1,
            Self::Far => 2,
        }
    }
}

/// The network of one of two guests: rxe and siw, each on its own wire.
pub(crate) fn two_guests(end: WireEnd) -> Network {
    let (mut links, mut rdma) = (String::from("link set lo up\n"), String::new());
    let host = end.host();
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
