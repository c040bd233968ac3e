//! The route to an address.

use std::fmt;

use rdmacm_core::{
    Addresses, DeviceId, DeviceLookup, Gid, Gids, IbAddr, PathData, PathRecord, RdmaDevice,
};

/// The route to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The device and its port; `None` for a wildcard address, which belongs to
    /// every device.
    pub device_port: Option<DevicePort>,
    /// The path records of the kernel; empty on iWARP, unless ibacm gave some, in passive
    /// results, and without route resolution.
    pub path_records: Vec<PathData>,
}

impl Route {
    /// The path records to give [`set_ib_path`](rdmacm_core::IdHandle::set_ib_path)
    /// instead of resolving the route: all of them, if one is
    /// [`USABLE`](PathData::USABLE).
    #[must_use]
    #[doc(alias = "RDMA_OPTION_IB_PATH")]
    pub fn settable(&self) -> &[PathData] {
        settable(&self.path_records)
    }
}

/// All paths if one of them is usable, otherwise none.
pub(crate) fn settable(paths: &[PathData]) -> &[PathData] {
    let usable = |path: &PathData| path.flags == PathData::USABLE;
    if paths.iter().any(usable) { paths } else { &[] }
}

/// The port at one end of a path, in the path's partition.
pub(crate) fn end_of(path: &PathRecord, gid: Gid) -> IbAddr {
    IbAddr {
        flow_info: path.flow_label,
        ..IbAddr::new(gid).with_pkey(path.pkey)
    }
}

/// The device and port an address is served by.
///
/// The connection manager names the device by a number.
/// [`rdma_device`](Self::rdma_device) finds its name and transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DevicePort {
    /// The device's id in the connection manager's answers.
    pub device: DeviceId,
    /// The number of the port, from 1.
    pub port: u8,
    /// The source's GID.
    pub source_gid: Gid,
    /// The destination's GID; `None` in a passive result.
    pub destination_gid: Option<Gid>,
    /// For the channel that resolved the address.
    pub(crate) lookup: DeviceLookup,
}

impl DevicePort {
    /// The device and port of an id; `None` if it has no device.
    pub(crate) fn new(
        addresses: &Addresses,
        gids: Option<Gids>,
        lookup: DeviceLookup,
    ) -> Option<Self> {
        let (device, gids) = (addresses.device?, gids?);
        Some(Self {
            device,
            port: addresses.port_number,
            source_gid: gids.source,
            destination_gid: gids.destination,
            lookup,
        })
    }

    /// The device, with its name and transport; `None` if it is gone or cannot be
    /// determined without doubt. See [`DeviceId::look_up`].
    ///
    /// Each call asks the kernel, by netlink: a device that was renamed since the
    /// resolution has its new name.
    #[must_use]
    #[doc(alias = "verbs")]
    pub fn rdma_device(&self) -> Option<RdmaDevice> {
        self.lookup.look_up(self.device)
    }
}

impl PartialEq for DevicePort {
    /// Compares what the kernel answered.
    fn eq(&self, other: &Self) -> bool {
        let answer = |device_port: &Self| {
            (
                device_port.device,
                device_port.port,
                device_port.source_gid,
                device_port.destination_gid,
            )
        };
        answer(self) == answer(other)
    }
}

impl Eq for DevicePort {}

impl fmt::Display for DevicePort {
    /// `mlx5_0 port 1`, with the name by [`rdma_device`](Self::rdma_device).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rdma_device() {
            Some(device) => f.write_str(&device.name)?,
            None => write!(f, "unknown device {}", self.device.guid)?,
        }
        write!(f, " port {}", self.port)
    }
}
