//! An open device.

use std::sync::Arc;

use rdmacm_abi::uverbs::{QueryDevice, QueryPort};
use rdmacm_core::{DeviceId, RdmaDevice};

use crate::completion_queue::CompletionQueue;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::operation::Operation;
use crate::port::PortAttr;
use crate::protection_domain::ProtectionDomain;
use crate::uverbs::Uverbs;

/// An open device, on which everything else is made. Clones are the same
/// context; it is closed when they and all that was made on it are gone.
///
/// While a context is open, removing the device (`rdma link del`) waits until
/// it is closed, and the connection manager reports no removal before that. Only
/// rxe of later kernels (not of Linux 6.1) goes at once; then every command is
/// `EIO`.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_context")]
pub struct Context(Arc<Open>);

#[derive(Debug)]
struct Open {
    device: String,
    limits: DeviceLimits,
    uverbs: Uverbs,
}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::NoNode`] and [`Error::Driver`] for a device that has no verbs
    /// or is driven by something this crate does not know; [`Error::Open`] and
    /// [`Error::OtherNode`] when its node is not to be had; [`Error::Command`]
    /// when the kernel refuses.
    #[doc(alias = "ibv_open_device")]
    pub fn open(device: &RdmaDevice) -> Result<Self> {
        let name = &device.name;
        let node = device.uverbs_node()?.ok_or_else(|| Error::NoNode {
            device: name.clone(),
        })?;
        let driver = Driver::of(name, node.driver, node.abi_version)?;
        let path = node.path();
        let uverbs = Uverbs::open(name, &path, node.number, driver)?;
        let limits = uverbs.ask(Operation::OpenContext, &QueryDevice::default())?;
        let limits = DeviceLimits::from(limits);
        // The number may have passed to another device since netlink told it.
        if limits.node_guid != device.guid {
            return Err(Error::OtherNode {
                path,
                device: name.clone(),
            });
        }
        Ok(Self(Arc::new(Open {
            device: name.clone(),
            limits,
            uverbs,
        })))
    }

    /// Opens the device that an id is attached to.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Error::NoNode`] for a device that is
    /// gone, or that nothing tells from another with the same GUID.
    pub fn open_by_id(id: DeviceId) -> Result<Self> {
        let device = id.look_up().ok_or_else(|| Error::NoNode {
            device: id.guid.to_string(),
        })?;
        Self::open(&device)
    }

    /// The device's name.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.0.device
    }

    /// The device's driver.
    #[must_use]
    pub fn driver(&self) -> Driver {
        self.0.uverbs.driver()
    }

    /// What the device can hold, asked for when it was opened.
    #[must_use]
    #[doc(alias = "ibv_query_device")]
    pub fn limits(&self) -> &DeviceLimits {
        &self.0.limits
    }

    /// What the port `number`, from 1, is like now.
    ///
    /// # Errors
    /// [`Error::Command`] with `EINVAL` where there is no such port.
    #[doc(alias = "ibv_query_port")]
    pub fn port(&self, number: u8) -> Result<PortAttr> {
        let operation = Operation::QueryPort(number);
        let answer = self.uverbs().ask(operation, &QueryPort::new(number))?;
        Ok(answer.into())
    }

    /// A new protection domain.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn create_protection_domain(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::create(self)
    }

    /// A new completion queue with room for `entries` completions or more.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, with `EINVAL` for no entries
    /// or more than the device's limit.
    #[doc(alias = "ibv_create_cq")]
    pub fn create_completion_queue(&self, entries: u32) -> Result<CompletionQueue> {
        CompletionQueue::create(self, entries)
    }

    pub(crate) fn uverbs(&self) -> &Uverbs {
        &self.0.uverbs
    }

    /// Whether both are one context. Handles of the kernel's count in one
    /// context only.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
