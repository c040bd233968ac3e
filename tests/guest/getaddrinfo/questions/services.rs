//! Services: valid and invalid port numbers, and names.

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{PortSpace, QpType};

use super::ask;
use crate::getaddrinfo::question::Question;

const FIGURES: &[&str] = &[
    "0",
    "1",
    "7471",
    "007471",
    "00000000000000000007471",
    "010",
    "65535",
    "65536",
    "70000",
    "4294967295",
    "4294967303",
    "99999999999999999999",
    "0x1d2f",
    "1e3",
    "7471.0",
    "+7",
    "-1",
    "-65529",
    " 7",
    "7 ",
    "",
    " ",
    "7471/tcp",
];
const NAMES: &[&str] = &[
    "storage",
    "streams",
    "datagrams",
    "same",
    "either",
    "another",
    "streams-alias",
    "3com-tsmux",
    "sctp-only",
    "STORAGE",
    "storage ",
    "none",
    "*",
];

pub(super) fn all() -> Vec<Question> {
    let kinds = [
        (None, None),
        (Some(QpType::RC), Some(PortSpace::TCP)),
        (Some(QpType::UD), Some(PortSpace::UDP)),
        (None, Some(PortSpace::IB)),
    ];
    let mut questions = Vec::new();
    for service in FIGURES.iter().chain(NAMES) {
        for (qp_type, port_space) in kinds {
            questions.push(Question {
                qp_type,
                port_space,
                ..ask("10.71.1.1", *service)
            });
        }
        questions.push(ask("rxe", *service));
        questions.push(Question {
            flags: AddrInfoFlags::PASSIVE,
            ..ask(None, *service)
        });
        // Which of two errors is reported.
        questions.push(ask("nobody", *service));
        questions.push(ask("fd71:1::1%nowhere", *service));
    }
    questions
}
