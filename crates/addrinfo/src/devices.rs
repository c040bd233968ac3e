//! The names and transports of the devices of a list.

use rdmacm_core::{CmAddr, DeviceId, EventChannel, Family, QpType, RdmaDevice, Transport};

use crate::addr_info::AddrInfo;
use crate::unreachable::{Reason, Step, Unreachable};

/// A cache of RDMA device lookups.
#[derive(Debug)]
pub(crate) struct Devices<'channel> {
    channel: &'channel EventChannel,
    known: Vec<(DeviceId, Option<RdmaDevice>)>,
}

impl<'channel> Devices<'channel> {
    pub(crate) fn on_channel(channel: &'channel EventChannel) -> Self {
        Self {
            channel,
            known: Vec::new(),
        }
    }

    /// Adds the device's name and transport, which the connection manager does not know,
    /// to each entry.
    pub(crate) fn complete(mut self, list: &mut [AddrInfo]) {
        for info in list {
            if let Err(reason) = self.complete_one(info) {
                info.reach = Err(reason);
            }
        }
    }

    fn complete_one(&mut self, info: &mut AddrInfo) -> Result<(), Unreachable> {
        let Ok(Some(via)) = info.reach.as_mut().map(|route| route.via.as_mut()) else {
            return Ok(());
        };
        let Some(device) = self.find(via.device) else {
            return Ok(());
        };
        via.device_name = Some(device.name.clone());
        via.transport = device.transport;
        let transport = device.transport;
        obstacle(info, transport).map_or(Ok(()), |reason| {
            Err(Unreachable {
                step: Step::Query,
                reason,
            })
        })
    }

    fn find(&mut self, id: DeviceId) -> Option<&RdmaDevice> {
        let known = self.known.iter().position(|(known, _)| *known == id);
        let at = known.unwrap_or_else(|| {
            self.known.push((id, self.channel.look_up(id)));
            self.known.len() - 1
        });
        self.known.get(at)?.1.as_ref()
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
