//! Results that depend on the transport of a device.

use rdmacm_core::{CmAddr, DeviceId, Family, QpType, Transport};

use crate::addr_info::AddrInfo;
use crate::route::DevicePort;
use crate::unreachable::{Reason, Step, Unreachable};

/// The transports of the devices of a list. The connection manager does not know them.
#[derive(Debug, Default)]
pub(crate) struct Transports(Vec<(DeviceId, Transport)>);

impl Transports {
    /// Checks that the device supports a reachable result. The device is looked up only if
    /// that depends on its transport.
    ///
    /// # Errors
    /// Why the device does not reach the address after all.
    pub(crate) fn check(&mut self, info: &AddrInfo) -> Result<(), Unreachable> {
        let Some(device_port) = info.device_port() else {
            return Ok(());
        };
        // On iWARP there is every obstacle that there is on any transport.
        if obstacle(info, Transport::IWarp).is_none() {
            return Ok(());
        }
        obstacle(info, self.of(device_port)).map_or(Ok(()), |reason| {
            Err(Unreachable {
                step: Step::Query,
                reason,
            })
        })
    }

    fn of(&mut self, device_port: &DevicePort) -> Transport {
        if let Some((_, transport)) = self
            .0
            .iter()
            .find(|(known, _)| *known == device_port.device)
        {
            return *transport;
        }
        let device = device_port.rdma_device();
        let transport = device.map_or(Transport::Unknown, |device| device.transport);
        self.0.push((device_port.device, transport));
        transport
    }
}

/// What the connection manager accepts when it resolves an address and rejects later:
/// types of queue pair at connect, loopback and native InfiniBand addresses at route
/// resolution.
fn obstacle(info: &AddrInfo, transport: Transport) -> Option<Reason> {
    let nowhere = |to: CmAddr| to.is_loopback() || to.is_unspecified();
    match transport {
        Transport::IWarp if info.qp_type != QpType::RC => Some(Reason::OnlyReliableConnected),
        Transport::IWarp | Transport::RoCE if info.family == Family::Ib => {
            Some(Reason::OnlyInfiniband)
        }
        Transport::IWarp | Transport::RoCE if info.destination.is_some_and(nowhere) => {
            Some(Reason::Loopback)
        }
        _ => None,
    }
}
