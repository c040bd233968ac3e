//! Address handles for paths.

use std::sync::Arc;

use rdmacm_core::{AhAttr, GlobalRoute, PathRecord};
use rdmacm_verbs::{AddressHandle, ProtectionDomain};

use super::datagram::Local;

/// Creates address handles for paths, without the socket.
#[derive(Debug)]
pub(crate) struct PathAddresses {
    pub(super) local: Arc<Local>,
    pub(super) domain: ProtectionDomain,
}

impl PathAddresses {
    /// An address handle for a path; `None` if the kernel refuses it. The kernel may resolve
    /// the neighbour for up to a second.
    pub(crate) fn create(&self, path: &PathRecord) -> Option<AddressHandle> {
        let attr = self.ah_attr(path)?;
        self.domain.create_address_handle(attr).ok()
    }

    /// The attributes have a global route, which RoCE requires and InfiniBand allows everywhere.
    fn ah_attr(&self, path: &PathRecord) -> Option<AhAttr> {
        let own = self.local.own.as_ref()?;
        Some(AhAttr {
            grh: GlobalRoute {
                destination_gid: path.dgid.0,
                flow_label: path.flow_label,
                source_gid_index: own.index.try_into().ok()?,
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
                ..GlobalRoute::default()
            },
            // RoCE has bytes of a MAC address there, which the kernel does not read.
            destination_lid: path.dlid,
            service_level: path.sl,
            static_rate: path.rate,
            is_global: 1,
            port_number: self.local.port,
            ..AhAttr::default()
        })
    }
}
