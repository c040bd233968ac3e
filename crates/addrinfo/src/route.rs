//! The route to an address.

use std::fmt;

use rdmacm_core::{DeviceId, Gid, IbAddr, PathData, PathRecord, Transport};

/// The route to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The device and its port; `None` for a wildcard address, which belongs to
    /// every device.
    pub via: Option<Via>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Via {
    /// The device's id in the connection manager's answers.
    pub device: DeviceId,
    /// The device's name; `None` if it cannot be determined without doubt.
    pub device_name: Option<String>,
    /// The device's transport, known if its name is.
    pub transport: Transport,
    /// The number of the port, from 1.
    pub port: u8,
    /// The source's GID.
    pub source_gid: Gid,
    /// The destination's GID; `None` in a passive result.
    pub destination_gid: Option<Gid>,
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device_name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "unknown device {}", self.device.guid)?,
        }
        write!(f, " port {}", self.port)
    }
}
