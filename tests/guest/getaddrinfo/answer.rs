//! Answers of both libraries in one format.

use std::collections::BTreeMap;

use rdmacm_addrinfo::{AddrInfo, AddrInfoResolver, DevicePort, Error, NameError, Result};
use rdmacm_core::CmAddr;

use super::question::{Question, address_words, family_word, flag_words, port_space_word, qp_word};

/// A result and, on success, the words of one entry by key.
pub(super) type Answer = BTreeMap<String, String>;

pub(super) const RESULT: &str = "result";
const SUCCESS: &str = "ok";
/// A path record and its flags.
const PATH_DATA: usize = 72;

/// librdmacm's answer: its result and its first entry.
pub(super) fn of_c(lines: &[String]) -> Answer {
    let words = lines.iter().take(2).flat_map(|line| line.split('\t'));
    words
        .map(|word| word.split_once('=').unwrap())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn is_success(answer: &Answer) -> bool {
    answer[RESULT] == SUCCESS
}

/// This library's answer: its result, and the entry that is first in the system's
/// order. Also the device that reaches that entry.
pub(super) fn of_ours(resolver: &AddrInfoResolver, question: &Question) -> (Answer, String) {
    let (node, service) = (question.node.as_deref(), question.service.as_deref());
    let hints = question.hints();
    let found = resolver.resolve(node, service, &hints);
    if hints.asks_administrator() {
        // It has no addresses before it has queried the kernel.
        return (
            Answer::from([(RESULT.to_owned(), result_word(&found))]),
            "-".to_owned(),
        );
    }
    let addresses = resolver.addresses(node, service, &hints);
    let (addresses, found) = match (addresses, found) {
        (Ok(addresses), Ok(found)) => (addresses, found),
        (addresses, found) => {
            let (one, other) = (result_word(&addresses), result_word(&found));
            assert_eq!(one, other, "by its two ways: {question}");
            return (Answer::from([(RESULT.to_owned(), one)]), "-".to_owned());
        }
    };
    check_order(question, &addresses, &found);
    let first = found
        .iter()
        .find(|info| judged_address(info) == addresses[0])
        .unwrap();
    let device = first.device_port().and_then(DevicePort::rdma_device);
    (
        entry(question, first),
        device.map_or_else(|| "-".to_owned(), |device| device.name),
    )
}

fn judged_address(info: &AddrInfo) -> CmAddr {
    info.destination.or(info.source).unwrap()
}

/// Reachable entries come first; otherwise the order is the system's.
fn check_order(question: &Question, addresses: &[CmAddr], found: &[AddrInfo]) {
    let reached = |info: &&AddrInfo| info.is_reachable();
    let split = found.iter().take_while(reached).count();
    let (near, far) = found.split_at(split);
    assert!(
        !far.iter().any(AddrInfo::is_reachable),
        "{question}: {found:?}"
    );
    let mut near = near.iter().map(judged_address).peekable();
    let mut far = far.iter().map(judged_address).peekable();
    for address in addresses {
        let next = near.next_if_eq(address).or_else(|| far.next_if_eq(address));
        assert!(next.is_some(), "{question}: {addresses:?}, {found:?}");
    }
    assert_eq!((near.next(), far.next()), (None, None), "{question}");
}

fn entry(question: &Question, info: &AddrInfo) -> Answer {
    let addressed = |address: Option<CmAddr>| address.map_or("-".to_owned(), address_words);
    let name = info.canonical_name.clone().unwrap_or("-".to_owned());
    let (source_name, destination_name) = if question.is_passive() {
        (name, "-".to_owned())
    } else {
        ("-".to_owned(), name)
    };
    let paths = info
        .route
        .as_ref()
        .map_or(0, |route| route.path_records.len());
    [
        (RESULT, SUCCESS.to_owned()),
        ("flags", flag_words(info.flags)),
        ("family", family_word(info.family).to_owned()),
        ("qp", qp_word(info.qp_type)),
        ("ps", port_space_word(info.port_space)),
        ("src", addressed(info.source)),
        ("dst", addressed(info.destination)),
        ("src_name", source_name),
        ("dst_name", destination_name),
        ("route", (paths * PATH_DATA).to_string()),
        ("connect", info.connect_data.len().to_string()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The class of an error: the manual page's code for it, or the error number for
/// invalid arguments.
fn result_word<T>(result: &Result<T>) -> String {
    let code = match result {
        Ok(_) => SUCCESS,
        Err(
            Error::NothingToResolve
            | Error::Hints(_)
            | Error::NulInText
            | Error::SaWithoutService
            | Error::ServiceName(_),
        ) => return errno(libc::EINVAL),
        Err(Error::SaAndDns | Error::SaWithNode) => return errno(libc::EOPNOTSUPP),
        Err(Error::NoInfinibandPort) => return errno(libc::ENOENT),
        // EAI_QPTYPE is its name in the manual page.
        Err(Error::QpType { .. }) => "EAI_SOCKTYPE",
        Err(Error::Name(name)) => match name {
            NameError::AddressFamily => "EAI_ADDRFAMILY",
            NameError::Again => "EAI_AGAIN",
            NameError::BadFlags => "EAI_BADFLAGS",
            NameError::Fail => "EAI_FAIL",
            NameError::Family => "EAI_FAMILY",
            NameError::Memory => "EAI_MEMORY",
            NameError::NoData => "EAI_NODATA",
            NameError::NoName => "EAI_NONAME",
            NameError::Service => "EAI_SERVICE",
            NameError::SocketType => "EAI_SOCKTYPE",
            NameError::System(number) => return errno(*number),
            other => return other.to_string(),
        },
        Err(other) => return other.to_string(),
    };
    code.to_owned()
}

fn errno(number: i32) -> String {
    format!("errno {number}")
}
