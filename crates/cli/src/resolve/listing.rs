//! Candidates as a table.

use rdmacm::addrinfo::{AddrInfo, DevicePort, Route};
use rdmacm::core::{CmAddr, PathMtu, PathRecord, Transport};

use super::route::{lids, lids_of_acm, words};
use crate::args::ResolveArgs;
use crate::table::Table;

const NONE: &str = "-";

pub(super) fn render(args: &ResolveArgs, candidates: &[AddrInfo]) -> String {
    let mut table = Table::new([
        "DESTINATION",
        "SOURCE",
        "DEVICE",
        "SOURCE GID",
        "DESTINATION GID",
        "PATH",
    ]);
    for candidate in candidates {
        table.row(row(candidate));
    }
    let mut text = table.render();
    let names = candidates
        .iter()
        .filter_map(|one| one.canonical_name.as_deref());
    for name in names.filter(|name| Some(*name) != args.node.as_deref()) {
        text.extend(["canonical name: ", name, "\n"]);
    }
    if args.routes {
        text.extend(candidates.iter().flat_map(routes));
    }
    text
}

/// The paths to a candidate: what the kernel has, which was ibacm's before where
/// that knew one, and what ibacm knows of one that is not reached.
fn routes(candidate: &AddrInfo) -> Vec<String> {
    let by = if candidate.paths.is_empty() {
        ""
    } else {
        " by ibacm"
    };
    let to = address(candidate.destination);
    let line = |words| format!("path to {to}{by}: {words}\n");
    let Ok(route) = &candidate.route else {
        let paths = candidate.paths.iter();
        return paths
            .map(|path| line(words(path, lids_of_acm(path))))
            .collect();
    };
    let device = route.device_port.as_ref().and_then(DevicePort::rdma_device);
    let transport = device.map_or(Transport::Unknown, |device| device.transport);
    let paths = route.path_records.iter();
    paths
        .map(|path| line(words(path, lids(path, transport))))
        .collect()
}

fn row(candidate: &AddrInfo) -> Vec<String> {
    let mut cells = vec![address(candidate.destination), address(candidate.source)];
    match &candidate.route {
        Ok(Route {
            device_port: Some(device_port),
            path_records,
            ..
        }) => cells.extend([
            device_port.to_string(),
            device_port.source_gid.to_string(),
            device_port
                .destination_gid
                .map_or(NONE.to_owned(), |gid| gid.to_string()),
            path_records
                .first()
                .map_or(NONE.to_owned(), |path| path_summary(&path.record)),
        ]),
        Ok(_) => cells.push("every device".to_owned()),
        Err(reason) => cells.push(reason.to_string()),
    }
    cells
}

/// A source's port matters only where the caller chose it.
fn address(address: Option<CmAddr>) -> String {
    match address {
        None => NONE.to_owned(),
        Some(address) if address.port() == 0 => address.host().to_string(),
        Some(address) => address.to_string(),
    }
}

fn path_summary(path: &PathRecord) -> String {
    format!(
        "mtu {}, sl {}, pkey {:#06x}, hop limit {}",
        mtu(path.mtu),
        path.sl,
        path.pkey,
        path.hop_limit
    )
}

/// In bytes: the encoding counts powers of two from 256.
pub(super) fn mtu(mtu: PathMtu) -> String {
    match mtu.number() {
        encoding @ 1..=5 => (128_u32 << encoding).to_string(),
        other => format!("encoding {other}"),
    }
}
