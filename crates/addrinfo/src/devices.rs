//! The names and transports of the devices of a list.

use rdmacm_core::{
    CmAddr, DeviceId, DeviceLookup, EventChannel, Family, QpType, RdmaDevice, Transport,
};

use crate::addr_info::AddrInfo;
use crate::unreachable::{Reason, Step, Unreachable};

/// A cache of RDMA device lookups, for a list of entries.
#[derive(Debug)]
pub(crate) struct Devices<'channel> {
    lookup: DeviceLookup<'channel>,
    known: Vec<(DeviceId, Option<RdmaDevice>)>,
    /// How many entries may still come, for which to keep what is known.
    left: usize,
}

impl<'channel> Devices<'channel> {
    pub(crate) fn on_channel(channel: &'channel EventChannel, entries: usize) -> Self {
        Self {
            lookup: channel.device_lookup(),
            known: Vec::new(),
            left: entries,
        }
    }

    /// Adds the device's name and transport, which the connection manager does not know,
    /// to a reachable entry.
    ///
    /// # Errors
    /// Why the device does not reach the address after all.
    pub(crate) fn complete(&mut self, info: &mut AddrInfo) -> Result<(), Unreachable> {
        self.left = self.left.saturating_sub(1);
        let Ok(Some(via)) = info.reach.as_mut().map(|route| route.via.as_mut()) else {
            return Ok(());
        };
        let Some(device) = self.find(via.device) else {
            return Ok(());
        };
        via.device_name = Some(device.name);
        via.transport = device.transport;
        let transport = device.transport;
        obstacle(info, transport).map_or(Ok(()), |reason| {
            Err(Unreachable {
                step: Step::Query,
                reason,
            })
        })
    }

    fn find(&mut self, id: DeviceId) -> Option<RdmaDevice> {
        if let Some((_, device)) = self.known.iter().find(|(known, _)| *known == id) {
            return device.clone();
        }
        let device = self.lookup.look_up(id);
        if self.left > 0 {
            self.known.push((id, device.clone()));
        }
        device
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
