//! Names of `/etc/hosts` and of the name server.

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{Family, PortSpace, QpType};

use super::{FAMILIES, PORT, ask};
use crate::getaddrinfo::question::Question;

const HOSTS: &[&str] = &[
    "rxe",
    "rxe6",
    "rxe-alias",
    "siw",
    "both",
    "turned",
    "many",
    "far",
    "looped",
    "localhost",
    "mixed-case",
    "RXE",
    "rxe.",
    "rxe ",
    "nobody",
    "bad name",
    "-rxe",
];
const SERVED: &[&str] = &[
    "four.test",
    "six.test",
    "both.test",
    "many.test",
    "crowd.test",
    "link-local.test",
    "loopback.test",
    "wildcard.test",
    "mapped.test",
    "under_score.test",
    "FOUR.test",
    "four.test.",
    "alias.test",
    "second.test",
    "chain.test",
    "both-alias.test",
    "short",
    "short.",
    "short.corp.test",
    "nothing.test",
    "nothing.corp.test",
    "text.test",
    "failing.upstream.test",
    "refusing.upstream.test",
    "malformed.upstream.test",
    "unimplemented.upstream.test",
    "far-alias.test",
    "elsewhere.example",
    "a-label-of-more-than-sixty-three-characters-is-too-long-for-a-name.test",
    "two..dots.test",
    ".test",
];
const TO_LISTEN_ON: &[&str] = &[
    "rxe",
    "rxe6",
    "both",
    "many",
    "far",
    "looped",
    "nobody",
    "both.test",
    "chain.test",
    "wildcard.test",
    "nothing.test",
    "text.test",
];
/// Each question takes a second or more, because it gets no answer.
const SILENT: &str = "silent.upstream.test";

pub(super) fn all() -> Vec<Question> {
    let mut questions = Vec::new();
    for name in HOSTS.iter().chain(SERVED) {
        for family in FAMILIES {
            questions.push(Question {
                family,
                qp_type: Some(QpType::RC),
                port_space: Some(PortSpace::TCP),
                ..ask(*name, PORT)
            });
        }
        questions.push(Question {
            flags: AddrInfoFlags::NUMERICHOST,
            ..ask(*name, PORT)
        });
        questions.push(ask(*name, None));
        questions.push(Question {
            port_space: Some(PortSpace::UDP),
            ..ask(*name, "storage")
        });
    }
    for name in TO_LISTEN_ON {
        questions.push(Question {
            flags: AddrInfoFlags::PASSIVE,
            ..ask(*name, PORT)
        });
    }
    for family in [None, Some(Family::V4)] {
        questions.push(Question {
            family,
            ..ask(SILENT, PORT)
        });
    }
    questions.push(Question {
        flags: AddrInfoFlags::NUMERICHOST,
        ..ask(SILENT, PORT)
    });
    questions
}
