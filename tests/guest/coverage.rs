//! `tests/coverage.md`: the tests that cover each command and event, generated from the
//! `covers(…)` options of the cases.

use std::fmt::Write as _;

use rdmacm_abi::{CommandNumber, EventNumber};
use rdmacm_core::AddressAbi;
use rdmacm_tests::Site;
use rdmacm_tests_macros::case;

use crate::suite;

/// The file in the repository.
const PAGE: &str = include_str!("../coverage.md");

const INTRODUCTION: &str = "\
# Coverage of the ucma interface

The tests of the guest suite that cover each command of `/dev/infiniband/rdma_cm` and each
event, on each kernel and device, or the reason why no test can. `cargo xtask coverage`
writes this page from the `covers(…)` options of the cases. `cargo xtask test` fails if
the page is stale, if a command or an event has neither a test nor a reason, and if it
has both.

";

/// A kernel and a device: their names, the kernel's role, and the device's site.
type Place = (&'static str, &'static str, fn(AddressAbi) -> Site);

const PLACES: &[Place] = &[
    ("new/rxe", "new", Site::rxe),
    ("new/siw", "new", Site::siw),
    ("stock/rxe", "stock", Site::rxe),
    ("stock/siw", "stock", Site::siw),
];

/// The reason why no test can cover something.
struct Reason {
    text: &'static str,
    explanation: &'static str,
    names: &'static [&'static str],
    places: &'static [&'static str],
}

const EVERYWHERE: &[&str] = &["new/rxe", "new/siw", "stock/rxe", "stock/siw"];
const ON_RXE: &[&str] = &["new/rxe", "stock/rxe"];
const ON_SIW: &[&str] = &["new/siw", "stock/siw"];
const ON_NEW: &[&str] = &["new/rxe", "new/siw"];
const ON_STOCK: &[&str] = &["stock/rxe", "stock/siw"];

const REASONS: &[Reason] = &[
    Reason {
        text: "not implemented by any kernel",
        explanation: "The command fails with `ENOSYS`.",
        names: &["GET_OPTION"],
        places: EVERYWHERE,
    },
    Reason {
        text: "newer than this kernel",
        explanation: "",
        names: &["ADDRINFO_RESOLVED", "ADDRINFO_ERROR", "USER"],
        places: ON_STOCK,
    },
    Reason {
        text: "needs a subnet administrator",
        explanation: "\
            InfiniBand's. RoCE and iWARP find routes, and RoCE joins groups, without one \
            and report failures at once.",
        names: &["ROUTE_ERROR"],
        places: EVERYWHERE,
    },
    Reason {
        text: "needs a subnet administrator",
        explanation: "",
        names: &["ADDRINFO_RESOLVED", "ADDRINFO_ERROR"],
        places: ON_NEW,
    },
    Reason {
        text: "needs a subnet administrator",
        explanation: "",
        names: &["MULTICAST_ERROR"],
        places: ON_RXE,
    },
    Reason {
        text: "no multicast on iWARP",
        explanation: "",
        names: &["LEAVE_MCAST", "MULTICAST_JOIN", "MULTICAST_ERROR"],
        places: ON_SIW,
    },
    Reason {
        text: "done by TCP on iWARP",
        explanation: "The kernel completes the handshake, and TCP has the TIME_WAIT state.",
        names: &["CONNECT_RESPONSE", "TIMEWAIT_EXIT"],
        places: ON_SIW,
    },
    Reason {
        text: "only for kernel queue pairs on RoCE",
        explanation: "",
        names: &["CONNECT_ERROR"],
        places: ON_RXE,
    },
];

/// The commands of one ABI of the address commands; the others belong to both.
const OF_ONE_ABI: &[(&str, AddressAbi)] = &[
    ("BIND_IP", AddressAbi::IpOnly),
    ("RESOLVE_IP", AddressAbi::IpOnly),
    ("QUERY_ROUTE", AddressAbi::IpOnly),
    ("JOIN_IP_MCAST", AddressAbi::IpOnly),
    ("BIND", AddressAbi::AnyFamily),
    ("RESOLVE_ADDR", AddressAbi::AnyFamily),
    ("QUERY", AddressAbi::AnyFamily),
    ("JOIN_MCAST", AddressAbi::AnyFamily),
];

/// The ABI of the tests to list: any, if both have the command.
fn abi_of(name: &str) -> AddressAbi {
    let of_one = OF_ONE_ABI.iter().find(|(one, _)| *one == name);
    of_one.map_or(AddressAbi::AnyFamily, |(_, abi)| *abi)
}

/// The tests that cover `name` on a kernel and a device.
fn tests(name: &str, kernel: &str, site: fn(AddressAbi) -> Site) -> Vec<String> {
    let abi = abi_of(name);
    let site = site(abi);
    let cases = suite::cases().into_iter();
    let cases = cases.filter(|case| case.covered().contains(&name));
    let cases = cases.filter(|case| case.missing(kernel, &site).is_none());
    let test = |case: &suite::Case| {
        if case.is_of_each_abi() {
            format!("`{}/{}`", suite::abi_name(abi), case.path())
        } else {
            format!("`{}`", case.path())
        }
    };
    cases.map(test).collect()
}

fn reason(name: &str, place: &str) -> Option<&'static str> {
    let mut reasons = REASONS.iter();
    let reason =
        reasons.find(|reason| reason.names.contains(&name) && reason.places.contains(&place));
    reason.map(|reason| reason.text)
}

/// A cell of the table: tests, or the reason why there are none.
fn cell(
    name: &str,
    place: &str,
    kernel: &str,
    site: fn(AddressAbi) -> Site,
) -> Result<String, String> {
    let tests = tests(name, kernel, site);
    match (tests.is_empty(), reason(name, place)) {
        (false, None) => Ok(tests.join(", ")),
        (true, Some(reason)) => Ok(format!("no test: {reason}")),
        (true, None) => Err(format!("{name} on {place}: neither a test nor a reason")),
        (false, Some(reason)) => Err(format!("{name} on {place}: tests, but also {reason:?}")),
    }
}

/// The named numbers of an enumeration.
fn numbered(name: fn(u32) -> Option<&'static str>) -> Vec<(u32, &'static str)> {
    const BEYOND: u32 = 64;
    let numbered = |number| Some((number, name(number)?));
    (0..BEYOND).filter_map(numbered).collect()
}

fn commands() -> Vec<(u32, &'static str)> {
    numbered(|number| CommandNumber::new(number).name())
}

fn events() -> Vec<(u32, &'static str)> {
    numbered(|number| EventNumber::new(number).name())
}

fn table(title: &str, rows: &[(u32, &'static str)]) -> Result<String, String> {
    let mut table = format!("## {title}\n\n| number | name |");
    for (place, ..) in PLACES {
        let _ = write!(table, " {place} |");
    }
    table += "\n|---|---|";
    table += &"---|".repeat(PLACES.len());
    for (number, name) in rows {
        let _ = write!(table, "\n| {number} | {name} |");
        for (place, kernel, site) in PLACES {
            let _ = write!(table, " {} |", cell(name, place, kernel, *site)?);
        }
    }
    Ok(table + "\n")
}

/// Generates the page from the registered cases.
pub(crate) fn page() -> Result<String, String> {
    let (commands, events) = (commands(), events());
    for case in suite::cases() {
        let mut known = commands.iter().chain(&events).map(|(_, name)| name);
        let unknown = case
            .covered()
            .iter()
            .find(|name| !known.any(|one| one == *name));
        if let Some(unknown) = unknown {
            return Err(format!(
                "{} covers {unknown}, which does not exist",
                case.path()
            ));
        }
    }
    let mut page = INTRODUCTION.to_owned();
    page += "Reasons that need an explanation:\n\n";
    for reason in REASONS
        .iter()
        .filter(|reason| !reason.explanation.is_empty())
    {
        let _ = writeln!(page, "- {}: {}", reason.text, reason.explanation);
    }
    page += "\n";
    page += &table("Commands", &commands)?;
    page += "\n";
    page += &table("Events", &events)?;
    Ok(page)
}

#[case]
fn the_page_is_current() {
    assert!(
        page().unwrap() == PAGE,
        "tests/coverage.md is stale: `cargo xtask coverage` writes it"
    );
}

#[case]
fn a_cell_needs_either_a_test_or_a_reason() {
    let on_new_siw = |name| cell(name, "new/siw", "new", Site::siw);
    assert!(
        on_new_siw("BIND")
            .unwrap()
            .starts_with("`any-family/bind::")
    );
    assert!(
        on_new_siw("BIND_IP")
            .unwrap()
            .starts_with("`ip-only/bind::")
    );
    assert_eq!(
        on_new_siw("LEAVE_MCAST").unwrap(),
        "no test: no multicast on iWARP"
    );
    let on_stock = cell("USER", "stock/rxe", "stock", Site::rxe);
    assert!(on_stock.unwrap().ends_with("newer than this kernel"));
    on_new_siw("NO_SUCH_COMMAND").unwrap_err();
    // A reason for another device, beside the tests of this one.
    cell("CONNECT_ERROR", "new/rxe", "new", Site::siw).unwrap_err();
}
