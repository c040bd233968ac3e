//! Names and transports for the devices of a list.

use rdmacm_core::{DeviceId, QpType, RdmaDevice, Transport};

use crate::addr_info::AddrInfo;
use crate::unreachable::{Reason, Step, Unreachable};

/// The devices asked about so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Devices(Vec<(DeviceId, Option<RdmaDevice>)>);

impl Devices {
    /// Completes what the connection manager said with what the RDMA core says
    /// about the device.
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
        // The connection manager resolves it and refuses only to connect.
        if device.transport == Transport::IWarp && info.qp_type != QpType::RC {
            return Err(Unreachable {
                step: Step::Query,
                reason: Reason::OnlyReliableConnected,
            });
        }
        Ok(())
    }

    fn find(&mut self, id: DeviceId) -> Option<&RdmaDevice> {
        let known = self.0.iter().position(|(known, _)| *known == id);
        let at = known.unwrap_or_else(|| {
            self.0.push((id, id.look_up()));
            self.0.len() - 1
        });
        self.0.get(at)?.1.as_ref()
    }
}
