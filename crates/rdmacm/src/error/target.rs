//! The peer and the device of an error.

use std::fmt;

use rdmacm_core::{CmAddr, IdHandle, RdmaDevice};

/// The peer and the device of an error, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    name: Option<String>,
    address: Option<CmAddr>,
    device: Option<String>,
}

impl Target {
    pub(crate) fn name(name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }

    pub(crate) fn device_name(name: &str) -> Self {
        Self {
            device: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// The peer and the device of an id. What the kernel does not tell is left out.
    pub(crate) fn from_id(id: &IdHandle, address: Option<CmAddr>) -> Self {
        let addresses = id.addresses().ok();
        let device = id.rdma_device().ok().flatten();
        let destination = addresses.and_then(|addresses| addresses.destination);
        Self::on_device(address.or(destination), device)
    }

    /// A peer and a device.
    pub(crate) fn on_device(address: Option<CmAddr>, device: Option<RdmaDevice>) -> Self {
        Self {
            name: None,
            address,
            device: device.map(|device| device.name),
        }
    }

    pub(crate) fn address(&self) -> Option<CmAddr> {
        self.address
    }

    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }
}

impl From<CmAddr> for Target {
    fn from(address: CmAddr) -> Self {
        Self {
            address: Some(address),
            ..Self::default()
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.address) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(address)) => address.fmt(f)?,
            (None, None) => f.write_str("a peer")?,
        }
        match &self.device {
            Some(device) => write!(f, " via {device}"),
            None => Ok(()),
        }
    }
}
