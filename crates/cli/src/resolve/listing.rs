//! Candidates as a table.

use rdmacm::addrinfo::{AddrInfo, Route};
use rdmacm::core::{CmAddr, PathMtu, PathRecord};

use crate::table::Table;

const NONE: &str = "-";

pub(super) fn render(node: &str, candidates: &[AddrInfo]) -> String {
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
    for name in names.filter(|name| *name != node) {
        text.extend(["canonical name: ", name, "\n"]);
    }
    text
}

fn row(candidate: &AddrInfo) -> Vec<String> {
    let mut cells = vec![address(candidate.destination), address(candidate.source)];
    match &candidate.reach {
        Ok(Route {
            via: Some(via),
            path_records,
            ..
        }) => cells.extend([
            via.to_string(),
            via.source_gid.to_string(),
            via.destination_gid
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
