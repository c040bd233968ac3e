//! Candidates as JSON.

use rdmacm::addrinfo::{AddrInfo, Error, Via};
use rdmacm::core::{CmAddr, PathData};
use serde::Serialize;

use crate::args::ResolveArgs;

/// The whole answer.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    node: &'a str,
    service: Option<&'a str>,
    reachable: bool,
    /// Why there are no candidates.
    error: Option<String>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Serialize)]
struct Candidate {
    destination: Option<Address>,
    source: Option<Address>,
    family: String,
    qp_type: String,
    port_space: String,
    canonical_name: Option<String>,
    reachable: bool,
    /// Why RDMA does not reach it.
    reason: Option<String>,
    device: Option<Device>,
    source_gid: Option<String>,
    destination_gid: Option<String>,
    path_records: Vec<Path>,
}

#[derive(Debug, Serialize)]
struct Address {
    #[serde(rename = "address")]
    ip: String,
    port: u16,
    /// The scope id of a link-local IPv6 address.
    scope_id: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Device {
    name: Option<String>,
    index: Option<u32>,
    guid: String,
    transport: String,
    port: u8,
}

#[derive(Debug, Serialize)]
struct Path {
    flags: u32,
    sgid: String,
    dgid: String,
    slid: u16,
    dlid: u16,
    pkey: u16,
    sl: u8,
    /// IBTA encoding: 1 is 256 bytes, 5 is 4096.
    mtu: u32,
    /// IBTA encoding.
    rate: u8,
    /// 4.096 µs × 2^this.
    packet_life_time: u8,
    flow_label: u32,
    hop_limit: u8,
    traffic_class: u8,
}

impl<'a> Document<'a> {
    pub(super) fn new(args: &'a ResolveArgs, answer: &Result<Vec<AddrInfo>, Error>) -> Self {
        let candidates = answer.as_deref().unwrap_or_default();
        Self {
            node: &args.node,
            service: args.service.as_deref(),
            reachable: candidates.iter().any(AddrInfo::is_reachable),
            error: answer.as_ref().err().map(ToString::to_string),
            candidates: candidates.iter().map(Candidate::from).collect(),
        }
    }

    pub(super) fn render(&self) -> String {
        crate::json::render(self)
    }
}

impl From<&AddrInfo> for Candidate {
    fn from(info: &AddrInfo) -> Self {
        let via = info.via();
        let route = info.reach.as_ref().ok();
        Self {
            destination: info.destination.map(Address::from),
            source: info.source.map(Address::from),
            family: info.family.to_string(),
            qp_type: format!("{:?}", info.qp_type),
            port_space: format!("{:?}", info.port_space),
            canonical_name: info.canonical_name.clone(),
            reachable: info.is_reachable(),
            reason: info.reach.as_ref().err().map(ToString::to_string),
            device: via.map(Device::from),
            source_gid: via.map(|via| via.source_gid.to_string()),
            destination_gid: via
                .and_then(|via| via.destination_gid)
                .map(|gid| gid.to_string()),
            path_records: route
                .map(|route| route.path_records.iter().map(Path::from).collect())
                .unwrap_or_default(),
        }
    }
}

impl From<CmAddr> for Address {
    fn from(address: CmAddr) -> Self {
        Self {
            ip: match address.ip() {
                Some(ip) => ip.to_string(),
                None => address.to_string(),
            },
            port: address.port(),
            scope_id: match address {
                CmAddr::V6(address) => Some(address.scope_id()).filter(|scope| *scope != 0),
                _ => None,
            },
        }
    }
}

impl From<&Via> for Device {
    fn from(via: &Via) -> Self {
        Self {
            name: via.device_name.clone(),
            index: via.device.index,
            guid: via.device.guid.to_string(),
            transport: via.transport.to_string(),
            port: via.port,
        }
    }
}

impl From<&PathData> for Path {
    fn from(path: &PathData) -> Self {
        let record = &path.record;
        Self {
            flags: path.flags.bits(),
            sgid: record.sgid.to_string(),
            dgid: record.dgid.to_string(),
            slid: record.slid,
            dlid: record.dlid,
            pkey: record.pkey,
            sl: record.sl,
            mtu: record.mtu.number(),
            rate: record.rate,
            packet_life_time: record.packet_life_time,
            flow_label: record.flow_label,
            hop_limit: record.hop_limit,
            traffic_class: record.traffic_class,
        }
    }
}
