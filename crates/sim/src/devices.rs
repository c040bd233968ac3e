//! The RDMA devices of a host, by name.

use std::net::IpAddr;

use rdmacm_core::{DeviceId, Error, InfinibandPort, RdmaDevice, RdmaDevices};

use crate::adapter::Port;
use crate::device::Device;
use crate::host::Host;
use crate::host_state::HostState;

/// The devices that ids on this host are attached to.
impl RdmaDevices for Host {
    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        let index = usize::try_from(id.index?).ok()?;
        self.with_state(|host| {
            let device = host.devices.get(index)?;
            let is_it = device.guid == id.guid && !device.is_removed;
            is_it.then(|| RdmaDevice::new(id, &device.name, device.transport))
        })?
    }

    fn list(&self) -> Result<Vec<RdmaDevice>, Error> {
        let describe = |(index, device): (usize, &Device)| {
            let id = DeviceId {
                index: u32::try_from(index).ok(),
                guid: device.guid,
            };
            RdmaDevice::new(id, &device.name, device.transport)
        };
        let devices = self.with_state(|host| host.present_devices().map(describe).collect());
        Ok(devices.unwrap_or_default())
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>, Error> {
        let ports = self.with_state(HostState::active_infiniband_ports);
        Ok(ports.unwrap_or_default())
    }

    fn host_addresses(&self) -> Option<Vec<IpAddr>> {
        Some(self.addresses())
    }
}

impl HostState {
    fn active_infiniband_ports(&self) -> Vec<InfinibandPort> {
        let active = |(_, port): &(_, &Port)| port.is_active();
        let ports = self.infiniband_ports().filter(active);
        let described = ports.filter_map(|(attached, port)| {
            let device = self.devices.get(attached.device)?;
            let gid = port.gids.first()?;
            let number = attached.port.into();
            Some(InfinibandPort::new(&device.name, number, *gid))
        });
        described.collect()
    }
}
