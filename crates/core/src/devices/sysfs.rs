//! What `/sys/class/infiniband` tells where netlink does not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Device, Netdev, PhysicalState, Port, PortState, Transport};
use crate::gid::Guid;

const CLASS: &str = "/sys/class/infiniband";

/// Every device sysfs shows, by name; empty where there is no such class.
pub(super) fn devices() -> io::Result<Vec<Device>> {
    devices_in(Path::new(CLASS))
}

/// The ports of a device, by number.
pub(super) fn ports(device: &str) -> io::Result<Vec<Port>> {
    let mut ports = Vec::new();
    for number in numbers_in(&Path::new(CLASS).join(device).join("ports"))? {
        ports.push(port(device, number)?);
    }
    Ok(ports)
}

/// The one device with this GUID; `None` if two have it.
pub(super) fn device_of(guid: Guid) -> Option<Device> {
    only(devices().ok()?, guid)
}

fn only(devices: Vec<Device>, guid: Guid) -> Option<Device> {
    let mut matching = devices.into_iter().filter(|device| device.guid == guid);
    match (matching.next(), matching.next()) {
        (Some(device), None) => Some(device),
        _ => None,
    }
}

fn devices_in(class: &Path) -> io::Result<Vec<Device>> {
    let entries = match fs::read_dir(class) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut devices = Vec::new();
    for entry in entries {
        // A device may vanish between the listing and a look at it.
        devices.extend(device(&entry?.path()));
    }
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(devices)
}

fn device(path: &Path) -> Option<Device> {
    Some(Device {
        index: None,
        name: path.file_name()?.to_str()?.to_owned(),
        guid: guid(&read(path.join("node_guid")).ok()?)?,
        transport: transport(path),
    })
}

/// `0011:2233:4455:6677`.
fn guid(text: &str) -> Option<Guid> {
    u64::from_str_radix(&text.replace(':', ""), 16)
        .ok()
        .map(Guid)
}

/// `node_type` tells an iWARP adapter from a channel adapter, and the link
/// layer of the first port tells InfiniBand from RoCE.
fn transport(path: &Path) -> Transport {
    let node_type = read(path.join("node_type")).unwrap_or_default();
    let link_layer = read(path.join("ports/1/link_layer")).unwrap_or_default();
    match (node_type.split(':').next(), link_layer.as_str()) {
        (Some("1"), "InfiniBand") => Transport::InfiniBand,
        (Some("1"), "Ethernet") => Transport::RoCE,
        (Some("4"), _) => Transport::IWarp,
        (Some("5" | "6"), _) => Transport::UsNic,
        _ => Transport::Unknown,
    }
}

fn port(device: &str, number: u32) -> io::Result<Port> {
    let path = Path::new(CLASS)
        .join(device)
        .join("ports")
        .join(number.to_string());
    Ok(Port {
        number,
        state: PortState(leading_number(&read(path.join("state"))?)),
        physical_state: PhysicalState(leading_number(&read(path.join("phys_state"))?)),
        netdev: read(path.join("gid_attrs/ndevs/0"))
            .ok()
            .map(|name| Netdev { index: None, name }),
    })
}

/// `4: ACTIVE`; 0, which no state has, where there is no number.
fn leading_number(text: &str) -> u8 {
    text.split(':')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn numbers_in(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        numbers.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok()),
        );
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn read(path: PathBuf) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, guid: u64) -> Device {
        Device {
            index: None,
            name: name.to_owned(),
            guid: Guid(guid),
            transport: Transport::Unknown,
        }
    }

    #[test]
    fn a_shared_guid_names_nobody() {
        let devices = vec![device("rxe0", 1), device("siw0", 1), device("mlx5_0", 2)];
        assert_eq!(only(devices.clone(), Guid(2)), Some(device("mlx5_0", 2)));
        assert_eq!(only(devices.clone(), Guid(1)), None);
        assert_eq!(only(devices, Guid(3)), None);
    }

    #[test]
    fn sysfs_text_is_read() {
        assert_eq!(
            guid("0011:22ff:fe33:4455"),
            Some(Guid(0x0011_22ff_fe33_4455))
        );
        assert_eq!(guid("nonsense"), None);
        assert_eq!(leading_number("4: ACTIVE"), 4);
        assert_eq!(leading_number(""), 0);
    }

    #[test]
    fn a_machine_without_the_class_has_no_devices() {
        assert_eq!(devices_in(Path::new("/nonexistent/class")).unwrap(), []);
    }
}
