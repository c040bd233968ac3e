//! `rdmacm devices`.

use nix::errno::Errno;
use rdmacm::core::{Error, Port, RdmaDevice};
use serde::Serialize;

use crate::args::DevicesArgs;
use crate::json;
use crate::outcome::Outcome;
use crate::table::Table;

mod addresses;

use addresses::Addresses;

/// The notice for a machine without a device.
pub(crate) const NO_DEVICE: &str = "there is no RDMA device: load its driver, or make a soft one: \
     rdma link add rxe0 type rxe netdev INTERFACE";

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    devices: Vec<DeviceView>,
    /// Why the list failed.
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct DeviceView {
    name: String,
    index: Option<u32>,
    guid: String,
    transport: String,
    ports: Vec<PortView>,
}

#[derive(Debug, Serialize)]
struct PortView {
    port: u32,
    state: String,
    link: String,
    netdev: Option<String>,
    addresses: Vec<String>,
}

pub(crate) fn run(args: &DevicesArgs) -> Outcome {
    let (devices, error) = match list() {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let success = error.is_none();
    if args.json {
        return Outcome {
            output: json::render(&Document { devices, error }),
            error_text: None,
            success,
        };
    }
    let none = (success && devices.is_empty()).then(|| NO_DEVICE.to_owned());
    Outcome {
        output: if devices.is_empty() {
            String::new()
        } else {
            listing(&devices)
        },
        error_text: error.or(none),
        success,
    }
}

fn list() -> Result<Vec<DeviceView>, Error> {
    let devices = RdmaDevice::list()?;
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let addresses = Addresses::of_this_machine();
    let views = devices.into_iter().filter_map(|device| {
        let ports = match device.ports() {
            Ok(ports) => ports,
            Err(error) if was_removed(&error) => return None,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(DeviceView {
            index: device.index,
            guid: device.guid.to_string(),
            transport: device.transport.to_string(),
            name: device.name,
            ports: ports
                .into_iter()
                .map(|port| port_view(port, &addresses))
                .collect(),
        }))
    });
    views.collect()
}

/// Whether a device was removed after it was listed: as netlink says it, or sysfs.
fn was_removed(error: &Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EINVAL | Errno::ENOENT | Errno::ENODEV))
}

fn port_view(port: Port, addresses: &Addresses) -> PortView {
    let netdev = port.netdev.map(|netdev| netdev.name);
    PortView {
        port: port.number,
        state: port.state.to_string(),
        link: port.physical_state.to_string(),
        addresses: netdev
            .as_deref()
            .map(|netdev| addresses.for_interface(netdev))
            .unwrap_or_default(),
        netdev,
    }
}

fn listing(devices: &[DeviceView]) -> String {
    let mut table = Table::new([
        "INDEX",
        "NAME",
        "TRANSPORT",
        "GUID",
        "PORT",
        "STATE",
        "LINK",
        "NETDEV",
        "ADDRESSES",
    ]);
    for device in devices {
        let index = device
            .index
            .map_or("-".to_owned(), |index| index.to_string());
        let head = [&index, &device.name, &device.transport, &device.guid];
        if device.ports.is_empty() {
            table.row(head);
        }
        for port in &device.ports {
            let number = port.port.to_string();
            let netdev = port.netdev.as_deref().unwrap_or("-");
            let addresses = port.addresses.join(", ");
            let tail = [&number, &port.state, &port.link, netdev, &addresses];
            table.row(head.map(String::as_str).into_iter().chain(tail));
        }
    }
    table.render()
}
