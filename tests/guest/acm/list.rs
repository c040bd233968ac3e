//! Lists in the format of librdmacm's side.

use std::fmt::Write as _;

use rdmacm_abi::{PathRecordData, SockaddrIb, SockaddrIn, SockaddrIn6};
use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{CmAddr, Family};
use zerocopy::IntoBytes;

/// The line of one entry, and the part of it that librdmacm may not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    kind: String,
    source: String,
    rest: String,
}

/// librdmacm's output: lists, each followed by an empty line.
pub(super) fn printed(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(Line::read).collect()
}

/// This library's list in librdmacm's order: native addresses first.
pub(super) fn ours(list: &[AddrInfo]) -> Vec<Line> {
    let (native, ip): (Vec<_>, Vec<_>) = list.iter().partition(|info| info.family == Family::Ib);
    native.into_iter().chain(ip).map(Line::of).collect()
}

/// Whether it equals librdmacm's list, except for additional source addresses.
pub(super) fn agree(theirs: &[Line], ours: &[Line]) -> bool {
    let same = |(theirs, ours): (&Line, &Line)| {
        let sourceless = theirs.source.is_empty();
        theirs.kind == ours.kind
            && theirs.rest == ours.rest
            && (sourceless || theirs.source == ours.source)
    };
    theirs.len() == ours.len() && theirs.iter().zip(ours).all(same)
}

impl Line {
    fn read(line: &str) -> Self {
        let Some((kind, rest)) = line.split_once(" source=") else {
            panic!("unexpected output of librdmacm's side: {line:?}")
        };
        let (source, rest) = rest.split_once(' ').unwrap();
        Self {
            kind: kind.to_owned(),
            source: source.to_owned(),
            rest: rest.to_owned(),
        }
    }

    fn of(info: &AddrInfo) -> Self {
        let family = number(info.family);
        let (qp, ps) = (info.qp_type.number(), info.port_space.number());
        let paths = info.paths.iter().map(PathRecordData::from);
        let paths: String = paths.map(|path| hexadecimal(path.as_bytes())).collect();
        Self {
            kind: format!("family={family} qp={qp} ps={ps:#x}"),
            source: info.source.map_or_else(String::new, address),
            rest: format!(
                "destination={} route={paths} connect={}",
                info.destination.map_or_else(String::new, address),
                hexadecimal(&info.connect_data)
            ),
        }
    }
}

/// The number of the family, for which glibc has no name for InfiniBand (`AF_IB`).
pub(super) fn number(family: Family) -> i32 {
    match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
        Family::Ib => 27,
    }
}

fn address(address: CmAddr) -> String {
    match address {
        CmAddr::V4(address) => hexadecimal(SockaddrIn::from(address).as_bytes()),
        CmAddr::V6(address) => hexadecimal(SockaddrIn6::from(address).as_bytes()),
        CmAddr::Ib(address) => hexadecimal(SockaddrIb::from(address).as_bytes()),
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
