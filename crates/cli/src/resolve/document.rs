//! Candidates as JSON.

use std::fmt::Write as _;

use rdmacm::addrinfo::{AddrInfo, DevicePort};
use rdmacm::core::{CmAddr, IbAddr, PathData, RdmaDevice, Transport};
use serde::Serialize;

use super::route::{lids, lids_of_acm, words};
use crate::args::ResolveArgs;

/// The output of `rdmacm resolve --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct Document<'a> {
    /// The node as given; null where a service or the local addresses were asked for.
    node: Option<&'a str>,
    /// The service as given.
    service: Option<&'a str>,
    /// Whether RDMA reaches any candidate.
    reachable: bool,
    /// Why there are no candidates.
    error: Option<String>,
    /// The addresses, those first that RDMA reaches.
    candidates: Vec<Candidate>,
}

/// An address, and how RDMA reaches it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Candidate {
    /// Null of an address to listen on.
    destination: Option<Address>,
    /// Null of a destination that cannot be reached and had none given.
    source: Option<Address>,
    /// "IPv4", "IPv6" or "InfiniBand".
    family: String,
    /// A name such as "RC".
    qp_type: String,
    /// A name such as "TCP".
    port_space: String,
    /// The node's canonical name; present in the first address only.
    canonical_name: Option<String>,
    /// Whether RDMA reaches it.
    reachable: bool,
    /// Why RDMA does not reach it.
    reason: Option<String>,
    /// Null if RDMA does not reach it, and for a wildcard address, which belongs to every
    /// device.
    device: Option<Device>,
    /// Written as an IPv6 address; null without a device.
    source_gid: Option<String>,
    /// Written as an IPv6 address; null without a device, and for an address to listen on.
    destination_gid: Option<String>,
    /// The path records that the kernel resolved, or was given from ibacm. Empty for an address
    /// to listen on, without routes, and if RDMA does not reach it; on iWARP only ibacm has any.
    path_records: Vec<Path>,
    /// The paths from ibacm.
    paths: Vec<Path>,
    /// The first bytes of the private data, in hexadecimal; empty except for the
    /// InfiniBand address of an IP peer.
    connect_data: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Address {
    /// An IP address, or a GID written as one.
    #[serde(rename = "address")]
    ip: String,
    /// 0 is left to the kernel.
    port: u16,
    /// The scope id of a link-local IPv6 address.
    scope_id: Option<u32>,
    /// What else a native InfiniBand address says.
    infiniband: Option<Infiniband>,
}

/// Of a native InfiniBand address, in host order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Infiniband {
    pkey: u16,
    flow_label: u32,
    traffic_class: u8,
    /// Hexadecimal, prefixed with 0x: JSON numbers hold 53 bits only.
    service_id: String,
    /// The bits of the service id that count, in the same form.
    service_mask: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Device {
    /// Null if it is not certain.
    name: Option<String>,
    /// The kernel's index.
    index: Option<u32>,
    /// The node's GUID.
    guid: String,
    /// "InfiniBand", "RoCE" or "iWARP", or what else the kernel says.
    transport: String,
    /// From 1.
    port: u8,
}

/// A path record, in host order and the field's encodings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Path {
    /// What the path is for: bits of `IBV_PATH_FLAG_*`.
    flags: u32,
    sgid: String,
    dgid: String,
    /// Null on RoCE and iWARP, which have no LIDs, and if the device is not known.
    slid: Option<u16>,
    /// As `slid`.
    dlid: Option<u16>,
    pkey: u16,
    sl: u8,
    /// IBTA encoding: 1 is 256 bytes, 5 is 4096.
    mtu: u32,
    /// IBTA encoding: 2 is 2.5 Gb/s.
    rate: u8,
    /// 4.096 µs × 2^this.
    packet_life_time: u8,
    flow_label: u32,
    hop_limit: u8,
    traffic_class: u8,
    /// The path in words.
    words: String,
}

impl<'a> Document<'a> {
    pub(super) fn new(args: &'a ResolveArgs, answer: &Result<Vec<AddrInfo>, String>) -> Self {
        let candidates = answer.as_deref().unwrap_or_default();
        Self {
            node: args.node.as_deref(),
            service: args.service.as_deref().or(args.sa.as_deref()),
            reachable: candidates.iter().any(AddrInfo::is_reachable),
            error: answer.as_ref().err().cloned(),
            candidates: candidates.iter().map(Candidate::from).collect(),
        }
    }

    pub(super) fn render(&self) -> String {
        crate::json::render(self)
    }
}

impl From<&AddrInfo> for Candidate {
    fn from(info: &AddrInfo) -> Self {
        let device_port = info.device_port();
        let route = info.route.as_ref().ok();
        let found = device_port.and_then(DevicePort::rdma_device);
        let transport = transport(found.as_ref());
        Self {
            destination: info.destination.map(Address::from),
            source: info.source.map(Address::from),
            family: info.family.to_string(),
            qp_type: format!("{:?}", info.qp_type),
            port_space: format!("{:?}", info.port_space),
            canonical_name: info.canonical_name.clone(),
            reachable: info.is_reachable(),
            reason: info.route.as_ref().err().map(ToString::to_string),
            device: device_port.map(|device_port| Device::new(device_port, found.as_ref())),
            source_gid: device_port.map(|device_port| device_port.source_gid.to_string()),
            destination_gid: device_port
                .and_then(|device_port| device_port.destination_gid)
                .map(|gid| gid.to_string()),
            path_records: route
                .map(|route| route.path_records.iter())
                .map(|paths| paths.map(|path| Path::new(path, lids(path, transport))))
                .map(Iterator::collect)
                .unwrap_or_default(),
            paths: info
                .paths
                .iter()
                .map(|path| Path::new(path, lids_of_acm(path)))
                .collect(),
            connect_data: hexadecimal(&info.connect_data),
        }
    }
}

fn transport(device: Option<&RdmaDevice>) -> Transport {
    device.map_or(Transport::Unknown, |device| device.transport)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl From<CmAddr> for Address {
    fn from(address: CmAddr) -> Self {
        let infiniband = match address {
            CmAddr::Ib(address) => Some(address),
            CmAddr::V4(_) | CmAddr::V6(_) => None,
        };
        let gid = infiniband.map(|address| address.gid.to_string());
        let ip = address.ip().map(|ip| ip.to_string());
        Self {
            ip: ip.or(gid).unwrap_or_default(),
            port: address.port(),
            scope_id: match address {
                CmAddr::V6(address) => Some(address.scope_id()).filter(|scope| *scope != 0),
                _ => None,
            },
            infiniband: infiniband.map(Infiniband::from),
        }
    }
}

/// The flow label's bits of the flow information; the traffic class stands above.
const FLOW_LABEL: u32 = 0xf_ffff;

impl From<IbAddr> for Infiniband {
    fn from(address: IbAddr) -> Self {
        Self {
            pkey: address.pkey,
            flow_label: address.flow_info & FLOW_LABEL,
            traffic_class: (address.flow_info >> FLOW_LABEL.count_ones()).to_le_bytes()[0],
            service_id: format!("{:#018x}", address.service_id),
            service_mask: format!("{:#018x}", address.service_mask),
        }
    }
}

impl Device {
    fn new(device_port: &DevicePort, found: Option<&RdmaDevice>) -> Self {
        Self {
            name: found.map(|device| device.name.clone()),
            index: device_port.device.index,
            guid: device_port.device.guid.to_string(),
            transport: transport(found).to_string(),
            port: device_port.port,
        }
    }
}

impl Path {
    fn new(path: &PathData, lids: Option<(u16, u16)>) -> Self {
        let record = &path.record;
        Self {
            flags: path.flags.bits(),
            sgid: record.sgid.to_string(),
            dgid: record.dgid.to_string(),
            slid: lids.map(|(from, _)| from),
            dlid: lids.map(|(_, to)| to),
            pkey: record.pkey,
            sl: record.sl,
            mtu: record.mtu.number(),
            rate: record.rate,
            packet_life_time: record.packet_life_time,
            flow_label: record.flow_label,
            hop_limit: record.hop_limit,
            traffic_class: record.traffic_class,
            words: words(path, lids),
        }
    }
}
