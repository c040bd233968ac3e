//! The service that is queried: subnet administrator or name server.

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{Family, QpType};
use rdmacm_tests::Site;

use super::{FAMILIES, FLAGS, NO_FLAGS, PORT, ask};
use crate::getaddrinfo::question::Question;

/// The first release that supports the flags; earlier ones ignore them.
const SINCE: u32 = 61;
const SERVICES: &[&str] = &["storage", "0x7147", "7471", "7471x", ""];
/// Longer than a name may be for the subnet administrator.
const LONG: &str = "a-service-whose-name-has-sixty-four-characters-is-one-byte-more!";

pub(super) fn all(site: &Site, release: u32) -> Vec<Question> {
    if release < SINCE {
        return Vec::new();
    }
    [by_administrator(site), by_name_server()].concat()
}

fn by_administrator(site: &Site) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut put = |more: AddrInfoFlags, question: Question| {
        let flags = AddrInfoFlags::SA | more;
        questions.push(Question { flags, ..question });
    };
    for flags in FLAGS.into_iter().chain([NO_FLAGS, AddrInfoFlags::DNS]) {
        for family in [None, Some(Family::V4), Some(Family::Ib)] {
            for node in [None, Some("10.71.1.1"), Some("nobody")] {
                for service in [None, Some("storage")] {
                    let question = ask(node, service);
                    put(flags, Question { family, ..question });
                }
            }
        }
    }
    for service in SERVICES.iter().chain([&LONG]) {
        for qp_type in [
            None,
            Some(QpType::RC),
            Some(QpType::UD),
            Some(QpType::new(8)),
        ] {
            let question = ask(None, *service);
            put(
                NO_FLAGS,
                Question {
                    qp_type,
                    ..question
                },
            );
        }
    }
    let (source, destination) = (Some(site.v4(0)), Some(site.v4(7471)));
    let question = ask(None, "storage");
    put(
        NO_FLAGS,
        Question {
            source,
            ..question.clone()
        },
    );
    put(
        NO_FLAGS,
        Question {
            destination,
            ..question
        },
    );
    questions
}

fn by_name_server() -> Vec<Question> {
    let nodes = [
        None,
        Some("10.71.1.1"),
        Some("fd71:1::1"),
        Some("rxe"),
        Some("many"),
        Some("chain.test"),
        Some("nobody"),
    ];
    let mut questions = Vec::new();
    for more in FLAGS.into_iter().chain([NO_FLAGS]) {
        for family in FAMILIES {
            for node in nodes {
                questions.push(Question {
                    flags: AddrInfoFlags::DNS | more,
                    family,
                    ..ask(node, PORT)
                });
            }
        }
    }
    questions
}
