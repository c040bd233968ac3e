//! The resolver in pure Rust, against a name server of the test's own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rdmacm_addrinfo::{AddrInfoResolver, Error, HickoryResolver, Hints, NameError};
use rdmacm_core::{CmAddr, Deadline, Family};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const NAME_ERROR: u8 = 3;
const SERVER_FAILURE: u8 = 2;

/// A question of one: its first byte to its last, its name, its type.
struct Question<'a> {
    bytes: &'a [u8],
    name: String,
    kind: u16,
}

/// RFC 1035 §4.1.2.
fn question(message: &[u8]) -> Question<'_> {
    let mut labels = Vec::new();
    let mut at = 12;
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8(message[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    let kind = u16::from_be_bytes([message[at + 1], message[at + 2]]);
    Question {
        bytes: &message[12..at + 5],
        name: labels.join("."),
        kind,
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn record(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = encoded(name);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
    bytes.extend_from_slice(&u16::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn storage(kind: u16) -> Vec<Vec<u8>> {
    let v4 = |last| Ipv4Addr::new(10, 1, 0, last).octets();
    match kind {
        A => vec![
            record("storage.test", A, &v4(7)),
            record("storage.test", A, &v4(8)),
        ],
        AAAA => vec![record("storage.test", AAAA, &V6.octets())],
        _ => Vec::new(),
    }
}

const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7);

/// What the server knows; nothing at all of a name it is silent about.
fn answer(question: &Question<'_>) -> Option<(u8, Vec<Vec<u8>>)> {
    let name = question.name.to_lowercase();
    Some(match name.as_str() {
        "storage.test" => (0, storage(question.kind)),
        "alias.test" => {
            let alias = record("alias.test", CNAME, &encoded("storage.test"));
            (0, [vec![alias], storage(question.kind)].concat())
        }
        "empty.test" => (0, Vec::new()),
        "broken.test" => (SERVER_FAILURE, Vec::new()),
        "silent.test" => return None,
        _ => (NAME_ERROR, Vec::new()),
    })
}

/// A name server for as long as the test runs.
fn addr_info_resolver() -> AddrInfoResolver {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = server.local_addr().unwrap();
    thread::spawn(move || {
        let mut message = [0; 1500];
        while let Ok((length, from)) = server.recv_from(&mut message) {
            reply(&server, &message[..length], from);
        }
    });
    AddrInfoResolver::new().name_resolver(HickoryResolver::with_name_servers([address]))
}

fn reply(server: &UdpSocket, message: &[u8], from: SocketAddr) {
    let question = question(message);
    let Some((code, records)) = answer(&question) else {
        return;
    };
    let mut bytes = message[..2].to_vec();
    // A response, recursion asked for and to be had; one question.
    bytes.extend_from_slice(&[0x81, 0x80 | code, 0, 1]);
    let count = u16::try_from(records.len()).unwrap();
    bytes.extend_from_slice(&count.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(question.bytes);
    bytes.extend(records.concat());
    server.send_to(&bytes, from).unwrap();
}

fn v4(last: u8) -> CmAddr {
    CmAddr::from((Ipv4Addr::new(10, 1, 0, last), 7471))
}

fn ask(name: &str, hints: &Hints) -> Result<Vec<CmAddr>, Error> {
    addr_info_resolver().addresses(name, "7471", hints)
}

#[test]
fn every_address_of_a_host_and_of_its_alias() {
    for name in ["storage.test", "alias.test"] {
        let mut found = ask(name, &Hints::rc()).unwrap();
        assert_eq!(found.remove(0), CmAddr::from((V6, 7471)), "{name}");
        found.sort_by_key(CmAddr::to_string);
        assert_eq!(found, [v4(7), v4(8)], "{name}");
    }
}

#[test]
fn a_family_leaves_the_other_out() {
    let six = ask("storage.test", &Hints::rc().family(Family::V6)).unwrap();
    assert_eq!(six, [CmAddr::from((V6, 7471))]);
    let four = ask("storage.test", &Hints::rc().family(Family::V4)).unwrap();
    assert_eq!(four.len(), 2);
}

#[test]
fn figures_and_services_do_not_get_there() {
    let silent = HickoryResolver::with_name_servers([]);
    let addr_info_resolver = AddrInfoResolver::new().name_resolver(silent);
    let found = addr_info_resolver.addresses("10.1.0.7", "7471", &Hints::rc());
    assert_eq!(found, Ok(vec![v4(7)]));
}

#[test]
fn failures_are_distinguished() {
    for (name, error) in [
        ("nobody.test", NameError::NoName),
        ("empty.test", NameError::NoData),
        ("broken.test", NameError::Again),
    ] {
        assert_eq!(ask(name, &Hints::rc()), Err(Error::Name(error)), "{name}");
    }
}

#[test]
fn a_silent_server_ends_at_the_deadline() {
    let deadline = Duration::from_millis(300);
    let started = Instant::now();
    let found = ask("silent.test", &Hints::rc().deadline(deadline));
    let elapsed = started.elapsed();
    let late = [Error::LookupDeadline, Error::Name(NameError::Again)].map(Err);
    assert!(late.contains(&found), "{found:?}");
    assert!(
        elapsed >= deadline && elapsed < 10 * deadline,
        "{elapsed:?}"
    );
}

/// Without a deadline the lookup is on the caller's thread.
#[test]
fn a_task_may_ask() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let hints = Hints::rc().deadline(Deadline::Never).family(Family::V6);
    let found = runtime.block_on(async { ask("storage.test", &hints) });
    assert_eq!(found.unwrap(), [CmAddr::from((V6, 7471))]);
}
