//! Questions in the formats of `tests/c/getaddrinfo.c` and of this library.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use rdmacm_addrinfo::{AddrInfoFlags, Hints};
use rdmacm_core::{CmAddr, Family, PortSpace, QpType};
use rdmacm_tests::PATIENCE;

/// Named constants of a kind, as in `tests/c/getaddrinfo.c`.
type Words = &'static [(&'static str, u32)];

const FLAGS: Words = &[
    ("PASSIVE", AddrInfoFlags::PASSIVE.bits()),
    ("NUMERICHOST", AddrInfoFlags::NUMERICHOST.bits()),
    ("NOROUTE", AddrInfoFlags::NOROUTE.bits()),
    ("FAMILY", AddrInfoFlags::FAMILY.bits()),
    ("SA", AddrInfoFlags::SA.bits()),
    ("DNS", AddrInfoFlags::DNS.bits()),
];
const QP_TYPES: Words = &[
    ("RC", QpType::RC.number() as u32),
    ("UC", QpType::UC.number() as u32),
    ("UD", QpType::UD.number() as u32),
    ("XRC_SEND", QpType::XRC_INI.number() as u32),
    ("XRC_RECV", QpType::XRC_TGT.number() as u32),
];
const PORT_SPACES: Words = &[
    ("TCP", PortSpace::TCP.number() as u32),
    ("UDP", PortSpace::UDP.number() as u32),
    ("IPOIB", PortSpace::IPOIB.number() as u32),
    ("IB", PortSpace::IB.number() as u32),
];

/// A question about a node and a service; absent fields are NULL or 0 in C.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Question {
    pub(super) node: Option<String>,
    pub(super) service: Option<String>,
    /// Without hints.
    pub(super) no_hints: bool,
    pub(super) flags: AddrInfoFlags,
    pub(super) family: Option<Family>,
    pub(super) qp_type: Option<QpType>,
    pub(super) port_space: Option<PortSpace>,
    pub(super) source: Option<CmAddr>,
    pub(super) destination: Option<CmAddr>,
    /// Requests canonical names, for which C has no hint.
    pub(super) canonical_name: bool,
}

impl Question {
    /// The hints for this library, with a deadline that a busy machine meets.
    pub(super) fn hints(&self) -> Hints {
        let mut hints = Hints::new().flags(self.flags).deadline(PATIENCE);
        if let Some(family) = self.family {
            hints = hints.family(family);
        }
        if let Some(qp_type) = self.qp_type {
            hints = hints.qp_type(qp_type);
        }
        if let Some(port_space) = self.port_space {
            hints = hints.port_space(port_space);
        }
        if let Some(source) = self.source {
            hints = hints.source(source);
        }
        if let Some(destination) = self.destination {
            hints = hints.destination(destination);
        }
        if self.canonical_name {
            hints = hints.canonical_name();
        }
        hints
    }

    pub(super) fn is_passive(&self) -> bool {
        self.flags.contains(AddrInfoFlags::PASSIVE)
    }

    /// The question's properties, by the keys of the list of differences.
    pub(super) fn facts(&self) -> BTreeMap<&'static str, String> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let addressed = |address: Option<CmAddr>| address.map_or("-".to_owned(), address_words);
        BTreeMap::from([
            ("node", or_none(&self.node)),
            ("service", or_none(&self.service)),
            ("hints", if self.no_hints { "none" } else { "given" }.into()),
            ("flags", flag_words(self.flags)),
            ("family", self.family.map_or("0", family_word).into()),
            ("qp", self.qp_type.map_or("0".into(), qp_word)),
            ("ps", self.port_space.map_or("0".into(), port_space_word)),
            ("src", addressed(self.source)),
            ("dst", addressed(self.destination)),
            (
                "canonical",
                if self.canonical_name { "yes" } else { "no" }.into(),
            ),
        ])
    }
}

/// In the format of the C program.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = |key, value: &str| match key {
            "hints" => false,
            "flags" | "family" | "qp" | "ps" => value == "0",
            "canonical" => true,
            "node" => self.node.is_none(),
            "service" => self.service.is_none(),
            _ => value == "-",
        };
        let mut facts = self.facts();
        facts.retain(|key, value| !open(*key, value));
        let words: Vec<_> = facts
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let line = words.join("\t");
        assert!(!line.contains('\n'), "{line}");
        f.write_str(&line)
    }
}

fn word(words: Words, number: u32) -> String {
    let known = words.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

pub(super) fn qp_word(qp_type: QpType) -> String {
    word(QP_TYPES, qp_type.number().into())
}

pub(super) fn port_space_word(port_space: PortSpace) -> String {
    word(PORT_SPACES, port_space.number().into())
}

pub(super) fn family_word(family: Family) -> &'static str {
    match family {
        Family::V4 => "INET",
        Family::V6 => "INET6",
        Family::Ib => "IB",
    }
}

pub(super) fn flag_words(flags: AddrInfoFlags) -> String {
    let named = FLAGS.iter().filter(|(_, bit)| flags.bits() & bit != 0);
    let mut words: Vec<_> = named.map(|(name, _)| (*name).to_owned()).collect();
    let known: u32 = FLAGS.iter().map(|(_, bit)| bit).sum();
    let rest = flags.bits() & !known;
    if rest != 0 || words.is_empty() {
        words.push(rest.to_string());
    }
    words.join("+")
}

pub(super) fn address_words(address: CmAddr) -> String {
    match address {
        CmAddr::V4(v4) => format!("{} {}", v4.ip(), v4.port()),
        CmAddr::V6(v6) => format!(
            "{} {} {:x} {:x}",
            groups(v6.ip().octets()),
            v6.port(),
            v6.flowinfo(),
            v6.scope_id()
        ),
        CmAddr::Ib(ib) => format!(
            "ib {} {:x} {:x} {:x} {:x} {:x}",
            groups(ib.gid.0),
            ib.pkey,
            ib.flow_info,
            ib.service_id,
            ib.service_mask,
            ib.scope_id
        ),
    }
}

/// Libraries abbreviate addresses in several ways.
fn groups(octets: [u8; 16]) -> String {
    let mut text = String::new();
    for (at, pair) in octets.chunks(2).enumerate() {
        let between = if at == 0 { "" } else { ":" };
        let group = u16::from_be_bytes([pair[0], pair[1]]);
        write!(text, "{between}{group:x}").unwrap();
    }
    text
}
