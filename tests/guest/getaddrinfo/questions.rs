//! The questions. Every node with every service and every hint would be too many, so
//! each group combines only fields that may affect each other.

use std::net::Ipv6Addr;

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{CmAddr, Family, Gid, IbAddr, PortSpace, QpType};
use rdmacm_tests::Site;

use super::question::Question;

mod addresses;
mod lookups;
mod names;
mod services;

const PORT: &str = "7471";
const FAMILIES: [Option<Family>; 3] = [None, Some(Family::V4), Some(Family::V6)];
const NO_FLAGS: AddrInfoFlags = AddrInfoFlags::empty();
const FLAGS: [AddrInfoFlags; 4] = [
    AddrInfoFlags::PASSIVE,
    AddrInfoFlags::NUMERICHOST,
    AddrInfoFlags::NOROUTE,
    AddrInfoFlags::FAMILY,
];
const QP_TYPES: [Option<QpType>; 6] = [
    None,
    Some(QpType::RC),
    Some(QpType::UC),
    Some(QpType::UD),
    Some(QpType::XRC_INI),
    Some(QpType::XRC_TGT),
];
const PORT_SPACES: [Option<PortSpace>; 5] = [
    None,
    Some(PortSpace::TCP),
    Some(PortSpace::UDP),
    Some(PortSpace::IPOIB),
    Some(PortSpace::IB),
];

/// All questions that the headers of a release can express, without duplicates.
pub(super) fn all(site: &Site, release: u32) -> Vec<Question> {
    let groups = [
        flags(),
        kinds(),
        without_hints(),
        services::all(),
        names::all(),
        addresses::all(site),
        stand_ins(site),
        infiniband(),
        strange(),
        lookups::all(site, release),
    ];
    let mut all: Vec<Question> = Vec::new();
    for question in groups.concat() {
        if !all.contains(&question) {
            all.push(question);
        }
    }
    all
}

fn ask<'text>(
    node: impl Into<Option<&'text str>>,
    service: impl Into<Option<&'text str>>,
) -> Question {
    Question {
        node: node.into().map(str::to_owned),
        service: service.into().map(str::to_owned),
        ..Question::default()
    }
}

/// No flag, each flag alone, and each pair.
fn sets_of_flags() -> Vec<AddrInfoFlags> {
    let mut sets = vec![NO_FLAGS];
    for (at, one) in FLAGS.iter().enumerate() {
        sets.push(*one);
        sets.extend(FLAGS[at + 1..].iter().map(|other| *one | *other));
    }
    sets
}

fn flags() -> Vec<Question> {
    let nodes = [
        None,
        Some("10.71.1.1"),
        Some("fd71:1::1"),
        Some("rxe"),
        Some("many"),
    ];
    let mut questions = Vec::new();
    for flags in sets_of_flags() {
        for family in FAMILIES {
            for node in nodes {
                questions.push(Question {
                    flags,
                    family,
                    ..ask(node, PORT)
                });
            }
        }
    }
    questions
}

/// Queue pair types and port spaces, alone and combined.
fn kinds() -> Vec<Question> {
    let mut questions = Vec::new();
    for qp_type in QP_TYPES {
        for port_space in PORT_SPACES {
            for flags in [NO_FLAGS, AddrInfoFlags::PASSIVE] {
                for node in [None, Some("10.71.1.1"), Some("siw")] {
                    questions.push(Question {
                        flags,
                        qp_type,
                        port_space,
                        ..ask(node, PORT)
                    });
                }
            }
        }
    }
    questions
}

fn without_hints() -> Vec<Question> {
    let mut questions = Vec::new();
    let nodes = [
        "10.71.1.1",
        "fd71:1::1",
        "rxe",
        "many",
        "many.test",
        "nobody",
    ];
    for node in nodes.map(Some).into_iter().chain([None]) {
        for service in [
            None,
            Some(PORT),
            Some("storage"),
            Some("datagrams"),
            Some("none"),
        ] {
            questions.push(Question {
                no_hints: true,
                ..ask(node, service)
            });
        }
    }
    questions
}

/// Addresses in the hints, instead of a node and beside one.
fn stand_ins(site: &Site) -> Vec<Question> {
    let v4 = |port| Some(site.v4(port));
    let v6 = |port| Some(site.v6(port));
    let mut link_local = site.link_local(site.scope_id());
    if let CmAddr::V6(v6) = &mut link_local {
        v6.set_port(7000);
    }
    let mut labelled = site.v6(7000);
    if let CmAddr::V6(v6) = &mut labelled {
        v6.set_flowinfo(0x1234_5600);
    }
    let plain = Some(CmAddr::from(([10, 71, 3, 1], 0)));
    let anywhere = Some(CmAddr::any(Family::V4));
    let sources = [
        None,
        v4(0),
        v4(7001),
        v6(7001),
        Some(link_local),
        plain,
        anywhere,
    ];
    let destinations = [
        None,
        v4(0),
        v4(7000),
        v6(7000),
        Some(link_local),
        Some(labelled),
    ];
    let mut questions = Vec::new();
    for source in sources {
        for destination in destinations {
            for flags in [NO_FLAGS, AddrInfoFlags::PASSIVE] {
                for (node, service) in [
                    (None, None),
                    (None, Some(PORT)),
                    (Some("10.71.1.1"), Some(PORT)),
                ] {
                    questions.push(Question {
                        flags,
                        source,
                        destination,
                        ..ask(node, service)
                    });
                }
            }
        }
        // As a connecting caller gives all of them.
        for family in FAMILIES {
            questions.push(Question {
                source,
                family,
                destination: v4(7000),
                qp_type: Some(QpType::RC),
                port_space: Some(PortSpace::TCP),
                ..Question::default()
            });
        }
    }
    questions
}

/// Native InfiniBand addresses. With `FAMILY` and `NUMERICHOST` the node is a GID. C
/// reads beyond the end of an IPv4 address there, and beyond the IPv4 wildcard without
/// a node, so these questions are left out.
fn infiniband() -> Vec<Question> {
    let gid = AddrInfoFlags::FAMILY | AddrInfoFlags::NUMERICHOST;
    let mut questions = Vec::new();
    for flags in sets_of_flags()
        .into_iter()
        .chain([gid | AddrInfoFlags::PASSIVE])
    {
        for node in ["fd71:1::1", "fe80::1%vrxe0", "nobody"] {
            for port_space in [None, Some(PortSpace::TCP)] {
                questions.push(Question {
                    flags,
                    port_space,
                    family: Some(Family::Ib),
                    ..ask(node, PORT)
                });
            }
            questions.push(Question {
                flags,
                family: Some(Family::Ib),
                ..ask(node, None)
            });
        }
    }
    let address = Some(CmAddr::Ib(IbAddr {
        pkey: 0xffff,
        flow_info: 0x1_2345,
        gid: Gid(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).octets()),
        service_id: 0x0106_1d2f,
        service_mask: u64::MAX,
        scope_id: 0,
    }));
    questions.push(Question {
        family: Some(Family::Ib),
        destination: address,
        ..Question::default()
    });
    questions.push(Question {
        flags: AddrInfoFlags::PASSIVE,
        family: Some(Family::Ib),
        source: address,
        ..Question::default()
    });
    questions
}

/// Values without a name in the headers, which C cannot express.
fn strange() -> Vec<Question> {
    let unknown = AddrInfoFlags::from_bits_retain(1 << 30);
    let mut questions = vec![ask(None, None)];
    for node in [None, Some("10.71.1.1"), Some("rxe")] {
        questions.push(Question {
            flags: unknown,
            ..ask(node, PORT)
        });
        questions.push(Question {
            flags: unknown | AddrInfoFlags::PASSIVE,
            ..ask(node, PORT)
        });
        questions.push(Question {
            port_space: Some(PortSpace::new(0x999)),
            ..ask(node, PORT)
        });
        questions.push(Question {
            qp_type: Some(QpType::new(8)),
            ..ask(node, PORT)
        });
    }
    for node in [
        "10.71.1.1",
        "fd71:1::1",
        "rxe",
        "rxe-alias",
        "both",
        "chain.test",
    ] {
        for flags in [NO_FLAGS, AddrInfoFlags::PASSIVE] {
            questions.push(Question {
                flags,
                canonical_name: true,
                ..ask(node, PORT)
            });
        }
    }
    questions
}
