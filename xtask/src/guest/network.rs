//! The network that every guest has.

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

fn addresses(link: &str, ipv4: &str, ipv6: &str) -> String {
    format!("address add {ipv4}/24 dev {link}\naddress add {ipv6}/64 dev {link} nodad\n")
}
