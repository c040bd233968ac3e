//! Devices from `/sys/class/infiniband` and `/sys/class/infiniband_verbs`, for what
//! netlink does not have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::stat::makedev;
use rdmacm_abi::uverbs::DriverId;

use super::{
    InfinibandPort, Netdev, PhysicalState, Port, PortState, RdmaDevice, Transport, UverbsNode,
};
use crate::gid::Gid;
use crate::guid::Guid;

/// The directory of classes.
pub(super) struct Sysfs(PathBuf);

impl Sysfs {
    pub(super) fn new() -> Self {
        Self("/sys/class".into())
    }

    /// One directory for each device.
    fn class(&self) -> PathBuf {
        self.0.join("infiniband")
    }

    /// Every device, by name; none if the class does not exist.
    pub(super) fn devices(&self) -> io::Result<Vec<RdmaDevice>> {
        let mut devices = Vec::new();
        for path in entries(&self.class())? {
            // A device may be removed after the listing.
            devices.extend(device(&path));
        }
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(devices)
    }

    /// The one device with this GUID; `None` if two have it.
    pub(super) fn device_of(&self, guid: Guid) -> Option<RdmaDevice> {
        let devices = self.devices().ok()?;
        let mut matching = devices.into_iter().filter(|device| device.guid == guid);
        matching.next().filter(|_| matching.next().is_none())
    }

    /// The ports of a device, by number.
    pub(super) fn ports(&self, device: &str) -> io::Result<Vec<Port>> {
        let directory = self.class().join(device).join("ports");
        let mut ports = Vec::new();
        for entry in fs::read_dir(directory)? {
            ports.extend(port(&entry?.path()));
        }
        ports.sort_by_key(|port| port.number);
        Ok(ports)
    }

    /// The network interface of an entry of a port's GID table.
    pub(super) fn gid_netdev(&self, device: &str, port: u8, index: u32) -> io::Result<Netdev> {
        let port = self.class().join(device).join(format!("ports/{port}"));
        let name = fs::read_to_string(port.join(format!("gid_attrs/ndevs/{index}")))?;
        let name = name.trim().to_owned();
        let number = fs::read_to_string(self.0.join("net").join(&name).join("ifindex"));
        let index = number.ok().and_then(|number| number.trim().parse().ok());
        Ok(Netdev { index, name })
    }

    /// Whether an entry of a port's GID table is of RoCE version 1 or of InfiniBand.
    pub(super) fn is_roce_v1(&self, device: &str, port: u8, index: u32) -> io::Result<bool> {
        let port = self.class().join(device).join(format!("ports/{port}"));
        let text = fs::read_to_string(port.join(format!("gid_attrs/types/{index}")))?;
        Ok(text.trim() == "IB/RoCE v1")
    }

    /// The active ports with the link layer InfiniBand, by device and number.
    pub(super) fn infiniband_ports(&self) -> io::Result<Vec<InfinibandPort>> {
        let mut ports = Vec::new();
        for device in entries(&self.class())? {
            // A device may be removed after the listing.
            for port in entries(&device.join("ports")).unwrap_or_default() {
                ports.extend(infiniband_port(&device, &port));
            }
        }
        ports.sort_by(|one, other| (&one.device, one.number).cmp(&(&other.device, other.number)));
        Ok(ports)
    }

    /// The verbs node of a device, if it still has its GUID.
    pub(super) fn uverbs_node(&self, device: &RdmaDevice) -> io::Result<Option<UverbsNode>> {
        let path = self.class().join(&device.name);
        if read(&path.join("node_guid")).and_then(|text| text.parse().ok()) != Some(device.guid) {
            return Ok(None);
        }
        let nodes = entries(&self.0.join("infiniband_verbs"))?;
        let node = nodes
            .iter()
            .find(|node| read(&node.join("ibdev")).as_ref() == Some(&device.name));
        Ok(node.and_then(|node| uverbs_node(node, driver(&path))))
    }
}

/// The paths in a directory; none if it does not exist.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn uverbs_node(path: &Path, driver: DriverId) -> Option<UverbsNode> {
    let number = read(&path.join("dev"))?;
    let (major, minor) = number.split_once(':')?;
    Some(UverbsNode {
        name: name(path)?.to_owned(),
        number: makedev(major.parse().ok()?, minor.parse().ok()?),
        abi_version: read(&path.join("abi_version"))?.parse().ok()?,
        driver,
    })
}

/// Sysfs has no driver for a device without hardware; the node descriptions of rxe and
/// siw identify them.
fn driver(path: &Path) -> DriverId {
    match read(&path.join("node_desc")).as_deref() {
        Some("rxe") => DriverId::RXE,
        Some("Software iWARP stack") => DriverId::SIW,
        _ => DriverId::UNKNOWN,
    }
}

fn device(path: &Path) -> Option<RdmaDevice> {
    Some(RdmaDevice {
        index: None,
        name: name(path)?.to_owned(),
        guid: read(&path.join("node_guid"))?.parse().ok()?,
        transport: transport(path),
    })
}

/// `node_type` distinguishes iWARP adapters from channel adapters, and the link layer of
/// the first port distinguishes InfiniBand from RoCE.
fn transport(path: &Path) -> Transport {
    let node_type = read(&path.join("node_type")).unwrap_or_default();
    let link_layer = read(&path.join("ports/1/link_layer")).unwrap_or_default();
    match (leading_number(&node_type), link_layer.as_str()) {
        (1, "InfiniBand") => Transport::InfiniBand,
        (1, "Ethernet") => Transport::RoCE,
        (4, _) => Transport::IWarp,
        (5 | 6, _) => Transport::UsNic,
        _ => Transport::Unknown,
    }
}

fn port(path: &Path) -> Option<Port> {
    Some(Port {
        number: name(path)?.parse().ok()?,
        state: PortState(leading_number(&read(&path.join("state"))?)),
        physical_state: PhysicalState(leading_number(&read(&path.join("phys_state"))?)),
        netdev: read(&path.join("gid_attrs/ndevs/0")).map(|name| Netdev { index: None, name }),
    })
}

fn infiniband_port(device: &Path, path: &Path) -> Option<InfinibandPort> {
    let is_infiniband = read(&path.join("link_layer"))? == "InfiniBand";
    let state = PortState(leading_number(&read(&path.join("state"))?));
    let gid: Gid = read(&path.join("gids/0"))?.parse().ok()?;
    let is_active = matches!(state, PortState::ACTIVE | PortState::ACTIVE_DEFER);
    let is_usable = is_infiniband && is_active && gid != Gid::UNSPECIFIED;
    let number = name(path)?.parse().ok()?;
    is_usable.then(|| InfinibandPort::new(name(device).unwrap_or_default(), number, gid))
}

/// The number in `4: ACTIVE`; 0, which is no state, without a number.
fn leading_number(text: &str) -> u8 {
    text.split(':')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A class directory with these files.
    fn class(files: &[(&str, &str)]) -> (TempDir, Sysfs) {
        let directory = TempDir::new().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let sysfs = Sysfs(directory.path().to_owned());
        (directory, sysfs)
    }

    const TWO_ON_ONE_INTERFACE: &[(&str, &str)] = &[
        ("infiniband/rxe0/node_guid", "5054:00ff:fe12:3456\n"),
        ("infiniband/rxe0/node_type", "1: CA\n"),
        ("infiniband/rxe0/ports/1/link_layer", "Ethernet\n"),
        ("infiniband/rxe0/ports/1/state", "4: ACTIVE\n"),
        ("infiniband/rxe0/ports/1/phys_state", "5: LinkUp\n"),
        ("infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n"),
        ("infiniband/siw0/node_guid", "5054:00ff:fe12:3456\n"),
        ("infiniband/siw0/node_type", "4: RNIC\n"),
        ("infiniband/mlx5_0/node_guid", "0c42:a103:00aa:bbcc\n"),
        ("infiniband/mlx5_0/node_type", "1: CA\n"),
        ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
        ("infiniband/broken/node_type", "1: CA\n"),
    ];

    const VERBS: &[(&str, &str)] = &[
        ("infiniband/rxe0/node_guid", "5054:00ff:fe12:3456\n"),
        ("infiniband/rxe0/node_desc", "rxe\n"),
        ("infiniband/mlx5_0/node_guid", "0c42:a103:00aa:bbcc\n"),
        ("infiniband/mlx5_0/node_desc", "storage-7 mlx5_0\n"),
        ("infiniband_verbs/abi_version", "6\n"),
        ("infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"),
        ("infiniband_verbs/uverbs0/dev", "231:192\n"),
        ("infiniband_verbs/uverbs0/abi_version", "1\n"),
        ("infiniband_verbs/uverbs1/ibdev", "rxe0\n"),
        ("infiniband_verbs/uverbs1/dev", "231:193\n"),
        ("infiniband_verbs/uverbs1/abi_version", "2\n"),
    ];

    #[test]
    fn devices_are_listed_by_name_with_their_transport() {
        let (_directory, sysfs) = class(TWO_ON_ONE_INTERFACE);
        let devices = sysfs.devices().unwrap();
        let seen: Vec<_> = devices
            .iter()
            .map(|device| (device.name.as_str(), device.transport))
            .collect();
        assert_eq!(
            seen,
            [
                ("mlx5_0", Transport::InfiniBand),
                ("rxe0", Transport::RoCE),
                ("siw0", Transport::IWarp)
            ]
        );
    }

    #[test]
    fn a_guid_names_a_device_only_if_no_other_has_it() {
        let (_directory, sysfs) = class(TWO_ON_ONE_INTERFACE);
        let name = |guid| sysfs.device_of(Guid(guid)).map(|device| device.name);
        assert_eq!(name(0x0c42_a103_00aa_bbcc).as_deref(), Some("mlx5_0"));
        assert_eq!(name(0x5054_00ff_fe12_3456), None);
        assert_eq!(name(7), None);
    }

    #[test]
    fn ports_have_their_state_and_interface() {
        let (_directory, sysfs) = class(TWO_ON_ONE_INTERFACE);
        let ports = sysfs.ports("rxe0").unwrap();
        assert_eq!(ports.len(), 1);
        assert_eq!(ports[0].state, PortState::ACTIVE);
        assert_eq!(ports[0].physical_state, PhysicalState::LINK_UP);
        assert_eq!(ports[0].netdev.as_ref().unwrap().name, "eth0");
        assert!(sysfs.ports("gone").is_err());
    }

    #[test]
    fn each_entry_of_a_gid_table_has_its_interface() {
        let (_directory, sysfs) = class(&[
            ("infiniband/rxe0/ports/1/gid_attrs/ndevs/300", "eth0.7\n"),
            ("net/eth0.7/ifindex", "12\n"),
        ]);
        let netdev = sysfs.gid_netdev("rxe0", 1, 300).unwrap();
        assert_eq!((netdev.index, netdev.name.as_str()), (Some(12), "eth0.7"));
        assert!(sysfs.gid_netdev("rxe0", 1, 301).is_err());
        assert!(sysfs.gid_netdev("rxe0", 2, 300).is_err());
    }

    #[test]
    fn each_entry_of_a_gid_table_has_its_version() {
        let (_directory, sysfs) = class(&[
            (
                "infiniband/mlx5_0/ports/1/gid_attrs/types/0",
                "IB/RoCE v1\n",
            ),
            ("infiniband/mlx5_0/ports/1/gid_attrs/types/1", "RoCE v2\n"),
        ]);
        let is_v1 = |index| sysfs.is_roce_v1("mlx5_0", 1, index);
        assert!(is_v1(0).unwrap());
        assert!(!is_v1(1).unwrap());
        assert!(is_v1(2).is_err());
    }

    const TWO_PORTS: &[(&str, &str)] = &[
        ("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
        ("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
        (
            "infiniband/mlx5_0/ports/1/gids/0",
            "fe80:0000:0000:0000:0c42:a103:00aa:bbcc\n",
        ),
        ("infiniband/mlx5_0/ports/2/link_layer", "InfiniBand\n"),
        ("infiniband/mlx5_0/ports/2/state", "1: DOWN\n"),
        (
            "infiniband/mlx5_0/ports/2/gids/0",
            "fe80:0000:0000:0000:0c42:a103:00aa:bbcd\n",
        ),
        ("infiniband/rxe0/ports/1/link_layer", "Ethernet\n"),
        ("infiniband/rxe0/ports/1/state", "4: ACTIVE\n"),
        (
            "infiniband/rxe0/ports/1/gids/0",
            "fe80:0000:0000:0000:5054:00ff:fe12:3456\n",
        ),
        ("infiniband/broken/ports/1/link_layer", "InfiniBand\n"),
    ];

    #[test]
    fn active_infiniband_ports_are_found_by_link_layer_and_state() {
        let (_directory, sysfs) = class(TWO_PORTS);
        let gid = "fe80::c42:a103:aa:bbcc".parse().unwrap();
        let expected = [InfinibandPort::new("mlx5_0", 1, gid)];
        assert_eq!(sysfs.infiniband_ports().unwrap(), expected);
    }

    #[test]
    fn a_machine_without_the_class_has_no_devices() {
        let sysfs = Sysfs("/nonexistent/class".into());
        assert_eq!(sysfs.devices().unwrap(), []);
        assert_eq!(sysfs.infiniband_ports().unwrap(), []);
    }

    #[test]
    fn a_verbs_node_is_found_by_the_devices_name_and_guid() {
        let (_directory, sysfs) = class(VERBS);
        let device = |name: &str, guid| RdmaDevice {
            index: None,
            name: name.to_owned(),
            guid: Guid(guid),
            transport: Transport::Unknown,
        };
        let rxe = device("rxe0", 0x5054_00ff_fe12_3456);
        let expected = UverbsNode {
            name: "uverbs1".to_owned(),
            number: makedev(231, 193),
            abi_version: 2,
            driver: DriverId::RXE,
        };
        assert_eq!(expected.path(), Path::new("/dev/infiniband/uverbs1"));
        assert_eq!(sysfs.uverbs_node(&rxe).unwrap(), Some(expected));
        let mlx = device("mlx5_0", 0x0c42_a103_00aa_bbcc);
        let found = sysfs.uverbs_node(&mlx).unwrap().unwrap();
        assert_eq!(found.driver, DriverId::UNKNOWN);
        let another = device("rxe0", 7);
        assert_eq!(sysfs.uverbs_node(&another).unwrap(), None);
        let gone = device("rxe1", 0x5054_00ff_fe12_3456);
        assert_eq!(sysfs.uverbs_node(&gone).unwrap(), None);
    }
}
