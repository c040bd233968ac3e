//! The questions for both libraries.

use rdmacm_abi::{PathFlags, PathRecord, PathRecordData};
use rdmacm_addrinfo::{AddrInfoFlags, Hints};
use rdmacm_core::{CmAddr, Family, Gid, PathData, PortSpace, QpType};
use rdmacm_tests::Site;
use zerocopy::{FromZeros, IntoBytes};

use super::list::hexadecimal;

/// The destination GID of ibacm's paths.
pub(super) const FAR: Gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
/// The source GID of ibacm's paths.
const NEAR: Gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// The paths in the hints, by their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathsHint {
    None,
    Record,
    Data,
    TwoData,
}

/// Node and hints.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) node: Option<String>,
    pub(super) service: Option<&'static str>,
    pub(super) flags: AddrInfoFlags,
    pub(super) family: Option<Family>,
    pub(super) qp_type: QpType,
    pub(super) port_space: PortSpace,
    pub(super) source: Option<CmAddr>,
    pub(super) destination: Option<CmAddr>,
    pub(super) paths: PathsHint,
}

impl Question {
    /// A question for the device's IPv4 address.
    pub(super) fn v4(site: &Site) -> Self {
        Self {
            node: Some(site.v4.to_string()),
            service: Some("7471"),
            flags: AddrInfoFlags::empty(),
            family: None,
            qp_type: QpType::RC,
            port_space: PortSpace::TCP,
            source: None,
            destination: None,
            paths: PathsHint::None,
        }
    }

    /// A question for the device's IPv6 address.
    pub(super) fn v6(site: &Site) -> Self {
        Self {
            node: Some(site.v6.to_string()),
            ..Self::v4(site)
        }
    }

    /// A question for a GID.
    pub(super) fn native(site: &Site) -> Self {
        Self {
            node: Some(FAR.to_string()),
            flags: AddrInfoFlags::NUMERICHOST | AddrInfoFlags::FAMILY,
            family: Some(Family::Ib),
            ..Self::v4(site)
        }
    }

    /// A question with an address as the name.
    pub(super) fn destination(site: &Site) -> Self {
        Self {
            node: None,
            service: None,
            destination: Some(site.v4(7471)),
            family: Some(Family::V4),
            ..Self::v4(site)
        }
    }

    pub(super) fn flags(mut self, flags: AddrInfoFlags) -> Self {
        self.flags = flags;
        self
    }

    pub(super) fn kind(mut self, port_space: PortSpace, qp_type: QpType) -> Self {
        (self.port_space, self.qp_type) = (port_space, qp_type);
        self
    }

    pub(super) fn source(mut self, source: CmAddr) -> Self {
        self.source = Some(source);
        self
    }

    pub(super) fn paths(mut self, paths: PathsHint) -> Self {
        self.paths = paths;
        self
    }

    /// The arguments for `tests/c/acm.c`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("flags={}", self.flags.bits()),
            format!("qp={}", self.qp_type.number()),
            format!("ps={}", self.port_space.number()),
        ];
        arguments.extend(self.node.iter().map(|node| format!("node={node}")));
        arguments.extend(self.service.map(|service| format!("service={service}")));
        let pair = |address: CmAddr| format!("{},{}", address.host(), address.port());
        arguments.extend(self.source.map(|source| format!("source={}", pair(source))));
        if let Some(destination) = self.destination {
            arguments.push(format!("destination={}", pair(destination)));
        }
        let family = self.family.map(super::list::number);
        arguments.extend(family.map(|number| format!("family={number}")));
        let paths = match self.paths {
            PathsHint::None => String::new(),
            PathsHint::Record => hexadecimal(hinted().record.as_bytes()),
            PathsHint::Data => hexadecimal(hinted().as_bytes()),
            PathsHint::TwoData => hexadecimal(hinted().as_bytes()).repeat(2),
        };
        if !paths.is_empty() {
            arguments.push(format!("route={paths}"));
        }
        arguments
    }

    /// The arguments for this library.
    pub(super) fn hints(&self) -> Hints {
        let mut hints = Hints::new().flags(self.flags);
        hints = hints.qp_type(self.qp_type).port_space(self.port_space);
        if let Some(family) = self.family {
            hints = hints.family(family);
        }
        if let Some(source) = self.source {
            hints = hints.source(source);
        }
        if let Some(destination) = self.destination {
            hints = hints.destination(destination);
        }
        let path = PathData::from(&hinted());
        match self.paths {
            PathsHint::None => hints,
            PathsHint::Record => hints.paths([path.record]),
            PathsHint::Data => hints.paths([path]),
            PathsHint::TwoData => hints.paths([path, path]),
        }
    }
}

/// The path of the hints.
pub(super) fn hinted() -> PathRecordData {
    let mut record = record();
    record.service_id = 0x1234_5678_9abc_def0.into();
    PathRecordData::new(PathFlags::PRIMARY, record)
}

/// The path in ibacm's answer.
pub(super) fn record() -> PathRecord {
    let mut record = PathRecord::new_zeroed();
    record.source_gid = NEAR.0;
    record.destination_gid = FAR.0;
    record.destination_lid = 5.into();
    record.source_lid = 3.into();
    record.flow_label_hop_limit = 0x0abc_de40.into();
    record.traffic_class = 7;
    record.reversible_path_count = 0x81;
    record.pkey = 0xffff.into();
    record.qos_class_service_level = 0x0123.into();
    record.mtu_selector_mtu = 0x83;
    record.rate_selector_rate = 0x83;
    record.life_selector_packet_life_time = 0x90;
    record.preference = 1;
    record
}
