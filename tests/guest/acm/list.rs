//! Lists, as librdmacm's side prints them.

use std::fmt::Write as _;

use rdmacm_abi::{PathRecordData, SockaddrIb, SockaddrIn, SockaddrIn6};
use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{CmAddr, Family};
use zerocopy::IntoBytes;

/// One entry's line, and what of it may be more than librdmacm knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    kind: String,
    source: String,
    rest: String,
}

/// What librdmacm's side printed: lists, each with an empty line behind it.
pub(super) fn printed(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(Line::read).collect()
}

/// Ours, in librdmacm's order: native addresses in front.
pub(super) fn ours(list: &[AddrInfo]) -> Vec<Line> {
    let (native, ip): (Vec<_>, Vec<_>) = list.iter().partition(|info| info.family == Family::Ib);
    native.into_iter().chain(ip).map(Line::of).collect()
}

/// Whether this is what librdmacm says, and at most a source more.
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
            panic!("librdmacm's side said {line:?}")
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
        let route = info.route.iter().map(PathRecordData::from);
        let route: String = route.map(|path| hexadecimal(path.as_bytes())).collect();
        Self {
            kind: format!("family={family} qp={qp} ps={ps:#x}"),
            source: info.source.map_or_else(String::new, address),
            rest: format!(
                "destination={} route={route} connect={}",
                info.destination.map_or_else(String::new, address),
                hexadecimal(&info.connect_data)
            ),
        }
    }
}

/// The family's number, which glibc does not name for InfiniBand (`AF_IB`).
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
