//! Numeric nodes: forms of addresses, scopes, and invalid ones.

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_tests::Site;

use super::{FAMILIES, PORT, ask};
use crate::getaddrinfo::question::Question;

const V4: &[&str] = &[
    "10.71.1.1",
    "10.71.2.1",
    "10.71.3.1",
    "203.0.113.1",
    "127.0.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "239.1.2.3",
    "10.71.257",
    "10.4653313",
    "172425473",
    "0x0a470101",
    "0xa.0x47.0x1.0x1",
    "012.0107.01.01",
    "010.71.1.1",
    "08.71.1.1",
    "10.71.1.1.",
    "10.71.1",
    "10..1.1",
    "10.71.1.256",
    "10.71.1.1.1",
    "4294967296",
    " 10.71.1.1",
    "10.71.1.1 ",
    "+10.71.1.1",
    "10.71.1.1%vrxe0",
    "",
    "*",
];
const V6: &[&str] = &[
    "fd71:1::1",
    "fd71:2::1",
    "FD71:1::1",
    "fd71:1:0:0:0:0:0:1",
    "fd71:0001::0001",
    "fd71:00001::1",
    "::",
    "::1",
    "::ffff:10.71.1.1",
    "::FFFF:a47:101",
    "::10.71.1.1",
    "::ffff:010.71.1.1",
    "2001:db8::1",
    "ff02::1",
    "ff02::1%vrxe0",
    "fe80::1",
    "fe80::1%lo",
    "fd71:1::1%0",
    "fd71:1::1%1",
    "fd71:1::1%vrxe0",
    "fd71:1::1%",
    "::1%lo",
    "::1%1",
    "[fd71:1::1]",
    "fd71:1:::1",
    "fd71::1::1",
    "12345::1",
    "fd71:1::1/64",
    "fd71:1::1 ",
    "::ffff:10.71.1.1%vrxe0",
    "::ffff:10.71.1.1%1",
    "2001:db8:0:0:0:0:1::",
    "1:2:3:4:5:6:7:8:9",
];

pub(super) fn all(site: &Site) -> Vec<Question> {
    let link_local = site.link_local(0).ip().unwrap();
    let number = site.scope_id();
    let scopes = [
        site.netdev.to_owned(),
        site.netdev.to_uppercase(),
        format!("{number}"),
        format!("0{number}"),
        format!("+{number}"),
        format!(" {number}"),
        format!("{number} "),
        format!("0x{number}"),
        format!("{}", u64::from(number) + (1 << 32)),
        String::new(),
        "0".to_owned(),
        "999".to_owned(),
        "-1".to_owned(),
        "nowhere".to_owned(),
        format!("{0}%{0}", site.netdev),
    ];
    let mut with_scope = vec![link_local.to_string()];
    with_scope.extend(scopes.map(|scope| format!("{link_local}%{scope}")));
    let nodes = V4.iter().chain(V6).copied();
    let nodes = nodes.chain(with_scope.iter().map(String::as_str));
    let mut questions = Vec::new();
    for node in nodes {
        for family in FAMILIES {
            questions.push(Question {
                family,
                ..ask(node, PORT)
            });
        }
        for flags in [AddrInfoFlags::PASSIVE, AddrInfoFlags::NUMERICHOST] {
            questions.push(Question {
                flags,
                ..ask(node, PORT)
            });
        }
    }
    questions
}
