//! The guest tests: what needs a real kernel and its RDMA devices.
//!
//! Every test runs once for each device it makes sense for and, where it sends
//! address commands, in both dialects: `stock/rxe/any-family/bind::wildcard`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on panics"
)]

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use rdma_core::RdmaCore;
use rdmacm_core::AddressAbi;
use rdmacm_tests::{Site, Soft};
use schedule::{Planned, When};

mod acm;
mod addrinfo;
mod allocation;
mod bind;
mod c_library;
mod c_tools;
mod channel;
mod child;
mod command;
mod connection;
mod coverage;
mod data;
mod datagrams;
mod dialect;
mod example;
mod face;
mod garbled;
mod graves;
mod held_back;
mod judge;
mod kept;
mod lifetime;
mod link;
mod listen;
mod migrate;
mod multicast;
mod newer;
mod options;
mod oracle;
mod privilege;
mod query;
mod rdma_core;
mod removal;
mod request;
mod resolve;
mod schedule;
mod sidr;
mod system_calls;
mod verbs;
mod writes;

/// A test: its name and what it does.
struct Case {
    name: &'static str,
    run: fn(&Site),
    /// The commands and events of the kernel that it is the proof of.
    shows: &'static [&'static str],
}

/// Lists a module's tests by their functions' names, each with what
/// `tests/coverage.md` may call it the proof of: `name shows [COMMAND, EVENT]`.
macro_rules! cases {
    ($module:literal: $($name:ident $(shows [$($shown:ident),+])?),+ $(,)?) => {
        crate::cases!($module as CASES: $($name $(shows [$($shown),+])?),+);
    };
    // Those of them that only some places have.
    ($module:literal as $list:ident:
        $($name:ident $(shows [$($shown:ident),+])?),+ $(,)?) => {
        /// Tests of this module.
        pub(crate) const $list: &[crate::Case] = &[
            $(crate::Case {
                name: concat!($module, "::", stringify!($name)),
                run: $name,
                shows: &[$($(stringify!($shown)),+)?],
            }),+
        ];
    };
}
use cases;

/// Lists tests that belong to no device.
macro_rules! once {
    ($module:literal: $($name:ident),+ $(,)?) => {
        crate::once!($module as CASES: $($name),+);
    };
    ($module:literal as $list:ident: $($name:ident),+ $(,)?) => {
        /// The tests of this module.
        pub(crate) const $list: &[crate::Case] = &[
            $(crate::Case {
                name: concat!($module, "::", stringify!($name)),
                run: |_| $name(),
                shows: &[],
            }),+
        ];
    };
}
use once;

/// In both dialects on both devices.
const IN_BOTH_DIALECTS: &[&[Case]] = &[
    addrinfo::infiniband::CASES,
    addrinfo::kinds::CASES,
    addrinfo::link_local::CASES,
    addrinfo::names::CASES,
    addrinfo::passive::CASES,
    addrinfo::reached::CASES,
    addrinfo::sources::CASES,
    addrinfo::unreached::CASES,
    allocation::CASES,
    bind::CASES,
    garbled::CASES,
    lifetime::CASES,
    listen::CASES,
    multicast::CASES,
    options::CASES,
    query::CASES,
    resolve::CASES,
];

/// On both devices.
const ON_BOTH_DEVICES: &[&[Case]] = &[
    acm::CASES,
    addrinfo::by_event::CASES,
    addrinfo::deadlines::CASES,
    channel::CASES,
    command::clients::CASES,
    command::devices::CASES,
    command::killed::CASES,
    command::perf::CASES,
    command::ping::CASES,
    command::resolve::CASES,
    connection::attributes::CASES,
    connection::depth::CASES,
    connection::ends::CASES,
    connection::failing::CASES,
    connection::notify::CASES,
    connection::order::CASES,
    connection::private_data::CASES,
    connection::reject::CASES,
    dialect::CASES,
    example::CASES,
    face::asynchronous::CASES,
    data::access::CASES,
    data::closing::CASES,
    data::failing::CASES,
    data::operations::CASES,
    data::order::CASES,
    data::poisoned::CASES,
    data::random::CASES,
    data::refused::CASES,
    data::shared::CASES,
    face::blocking::CASES,
    face::endpoint::CASES,
    face::endpoint::waiting::CASES,
    face::messages::CASES,
    face::messages::awaited::CASES,
    face::messages::crashed::CASES,
    face::messages::dropped::CASES,
    face::migration::CASES,
    face::outcomes::CASES,
    face::overtaken::CASES,
    face::several::CASES,
    face::traced::CASES,
    face::ways::CASES,
    kept::CASES,
    migrate::CASES,
    migrate::connection::CASES,
    migrate::listener::CASES,
    migrate::race::CASES,
    migrate::waiting::CASES,
    newer::CASES,
    privilege::CASES,
    request::CASES,
    verbs::context::CASES,
    verbs::gids::CASES,
    verbs::inherited::CASES,
    verbs::lifetime::CASES,
    verbs::objects::CASES,
    writes::CASES,
];

/// On both devices, with the guest to themselves: they make and remove RDMA
/// devices, which wildcard listeners and whoever lists devices notice, or measure time
/// or memory.
const ALONE: &[&[Case]] = &[
    face::burst::CASES,
    face::endpoint::waiting::ALONE,
    face::handshakes::ALONE,
    face::messages::broken::CASES,
    face::messages::cycles::CASES,
    face::storm::CASES,
    kept::device::CASES,
    removal::CASES,
    verbs::inherited::ALONE,
];

/// The same, on rxe.
const ALONE_ON_RXE: &[&[Case]] = &[face::messages::broken::ON_ROCE, kept::device::ON_ROCE];

const UNWATCHED: &str = "iWARP leaves its neighbours to TCP";

/// On both devices, with nobody at work meanwhile: they measure time, and mostly wait.
const QUIET: &[&[Case]] = &[face::deadlines::CASES, face::handshakes::CASES];

/// The same, on siw.
const QUIET_ON_SIW: &[&[Case]] = &[face::handshakes::ON_IWARP];

/// Where there are datagrams and groups.
const ON_RXE: &[&[Case]] = &[
    connection::attributes::ON_ROCE,
    connection::ece::CASES,
    data::failing::ON_ROCE,
    data::operations::ON_ROCE,
    data::refused::ON_ROCE,
    datagrams::elsewhere::ON_ROCE,
    face::messages::dropped::ON_ROCE,
    kept::ON_ROCE,
    migrate::group::CASES,
    sidr::CASES,
];
const ON_RXE_IN_BOTH_DIALECTS: &[&[Case]] = &[multicast::groups::CASES];

/// The same: datagrams are counted, of which a busy guest loses some.
const COUNTED: &[&[Case]] = &[
    data::unreliable::CASES,
    datagrams::awaited::CASES,
    datagrams::blocking::CASES,
    datagrams::groups::CASES,
    datagrams::removal::CASES,
];
const CONNECTED: &str = "siw has reliable connections alone";

/// Where a handshake is TCP's to begin.
const ON_SIW: &[&[Case]] = &[
    connection::reject::ON_IWARP,
    data::failing::ON_IWARP,
    datagrams::elsewhere::CASES,
    face::offloaded::CASES,
    kept::ON_IWARP,
];
const NO_TCP: &str = "RoCE has no TCP connection to begin with";

/// Where the kernel takes events of one's own.
const ON_NEWER: &[&[Case]] = &[kept::NEWER];
const OLDER: &str = "this kernel takes no events of one's own";

/// On both devices, where the C library's side was built.
const WITH_C: &[&[Case]] = &[c_library::CASES];
const WITHOUT_C: &str = "tests/c/peer.c was not built: it takes gcc and librdmacm's headers";

/// On both devices, where there are rdma-core's tools.
const WITH_TOOLS: &[&[Case]] = &[c_tools::rping::CASES, c_tools::ucmatose::CASES];
const WITHOUT_TOOLS: &str = "rdma-core's tools are not installed: rdmacm-utils";

/// The same, where there are those that send one message.
const WITH_ONE_MESSAGE: &[&[Case]] = &[c_tools::one_message::CASES];

/// The same, where cmtime is of the older kind.
const WITH_CMTIME: &[&[Case]] = &[c_tools::cmtime::CASES];
const WITHOUT_CMTIME: &str =
    "there is no cmtime that needs nothing but connections: rdmacm-utils before 52";

/// The same, where there is the newest release's.
const WITH_NEWEST_CMTIME: &[&[Case]] = &[c_tools::cmtime::mesh::CASES];

/// The same, where there are datagram services.
const WITH_DATAGRAMS: &[&[Case]] = &[c_tools::mckey::CASES, c_tools::udaddy::CASES];
/// On both devices, where there is strace.
const WITH_STRACE: &[&[Case]] = &[system_calls::CASES];
const WITHOUT_STRACE: &str = "strace is not installed";

/// On neither, as `both`.
const ONCE: &[&[Case]] = &[addrinfo::by_event::ONCE, addrinfo::name_server::CASES];

/// The same, where it is known what the kernel has.
const OF_KNOWN_KERNELS: &[&[Case]] = &[coverage::CASES];
const UNKNOWN_KERNEL: &str = "nothing is said of a kernel of one's own";

/// The same, where the C library can be asked about names.
const WITH_ORACLE: &[&[Case]] = &[oracle::CASES];
const WITH_NEWEST_ORACLE: &[&[Case]] = &[oracle::NEWEST];

/// Where the connecting side answers a response.
const WITH_RESPONSE: &[&[Case]] = &[
    connection::failing::WITH_RESPONSE,
    connection::response::CASES,
];
const NO_RESPONSE: &str = "iWARP's peers connect without a response of the connecting side";

/// Where queue pairs go where they are told.
const MOVED: &[&[Case]] = &[verbs::states::CASES];
const MOVES_ITSELF: &str = "siw moves queue pairs itself, when it connects them";

/// Where they do not.
const UNMOVED: &[&[Case]] = &[verbs::iwarp::CASES];
const IS_MOVED: &str = "rxe moves queue pairs where it is told";

fn main() -> ExitCode {
    if let Some(code) = child::run_if_asked() {
        return code;
    }
    let Ok(kernel) = std::env::var("RDMACM_KERNEL") else {
        println!("this suite runs in a guest: cargo xtask test");
        return ExitCode::FAILURE;
    };
    if let Err(error) = held_back::prepare() {
        println!("the guest's own traffic cannot be led through a queue: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = face::deadlines::prepare() {
        println!("TCP cannot be told when to give up: {error}");
        return ExitCode::FAILURE;
    }
    let mut arguments = Arguments::from_args();
    let (trials, threads) = schedule::plan(tests(&kernel).planned);
    arguments.test_threads = arguments.test_threads.or(Some(threads));
    if trials.iter().all(|trial| arguments.is_filtered_out(trial)) {
        println!("no test has such a name");
        return ExitCode::FAILURE;
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    schedule::print_times();
    conclusion.exit_code()
}

/// The tests of a kernel.
#[derive(Default)]
struct Suite {
    planned: Vec<Planned>,
    /// Those that are not skipped.
    runs: HashMap<String, &'static Case>,
}

fn tests(kernel: &str) -> Suite {
    let mut tests = Suite::default();
    let tools = ["rping", "ucmatose", "udaddy", "mckey"].map(c_tools::installed);
    let tools = !tools.contains(&false);
    let one_message = c_tools::one_message::TOOLS.map(c_tools::installed);
    let one_message = !one_message.contains(&false);
    let cmtime = c_tools::cmtime::is_alone();
    for site in [Site::rxe, Site::siw] {
        for dialect in [AddressAbi::AnyFamily, AddressAbi::IpOnly] {
            let site = site(dialect);
            let name = format!("{}/{}", site.driver(), dialect_name(dialect));
            add(&mut tests, kernel, &name, site, IN_BOTH_DIALECTS);
            let modules = ON_RXE_IN_BOTH_DIALECTS;
            match site.soft {
                Soft::Rxe => add(&mut tests, kernel, &name, site, modules),
                Soft::Siw => skip(&mut tests, kernel, &name, modules, CONNECTED),
            }
        }
        let site = site(AddressAbi::AnyFamily);
        add(&mut tests, kernel, site.driver(), site, ON_BOTH_DEVICES);
        add(&mut tests, kernel, site.driver(), site, QUIET);
        add(&mut tests, kernel, site.driver(), site, ALONE);
        let without_datagrams = match site.soft {
            Soft::Rxe => WITHOUT_TOOLS,
            Soft::Siw => CONNECTED,
        };
        for (modules, can_run, otherwise) in [
            (WITH_RESPONSE, site.soft == Soft::Rxe, NO_RESPONSE),
            (ALONE_ON_RXE, site.soft == Soft::Rxe, UNWATCHED),
            (QUIET_ON_SIW, site.soft == Soft::Siw, NO_TCP),
            (ON_RXE, site.soft == Soft::Rxe, CONNECTED),
            (COUNTED, site.soft == Soft::Rxe, CONNECTED),
            (ON_SIW, site.soft == Soft::Siw, NO_TCP),
            (ON_NEWER, newer::is_new(), OLDER),
            (MOVED, site.soft == Soft::Rxe, MOVES_ITSELF),
            (UNMOVED, site.soft == Soft::Siw, IS_MOVED),
            (WITH_C, command::built("rdmacm-c-peer").exists(), WITHOUT_C),
            (WITH_TOOLS, tools, WITHOUT_TOOLS),
            (WITH_ONE_MESSAGE, one_message, WITHOUT_TOOLS),
            (WITH_CMTIME, cmtime, WITHOUT_CMTIME),
            (
                WITH_NEWEST_CMTIME,
                c_tools::cmtime::mesh::is_there(),
                c_tools::cmtime::mesh::WITHOUT,
            ),
            (
                WITH_DATAGRAMS,
                site.soft == Soft::Rxe && tools,
                without_datagrams,
            ),
            (
                WITH_STRACE,
                Path::new("/usr/bin/strace").exists(),
                WITHOUT_STRACE,
            ),
        ] {
            if can_run {
                add(&mut tests, kernel, site.driver(), site, modules);
            } else {
                skip(&mut tests, kernel, site.driver(), modules, otherwise);
            }
        }
        for rdma_core in RdmaCore::judges() {
            tests
                .planned
                .extend(judge::trials(kernel, site, *rdma_core));
        }
        tests.planned.extend(acm::trials(kernel, site));
    }
    let site = Site::rxe(AddressAbi::AnyFamily);
    add(&mut tests, kernel, "both", site, ONCE);
    if ["new", "stock"].contains(&kernel) {
        add(&mut tests, kernel, "both", site, OF_KNOWN_KERNELS);
    } else {
        skip(&mut tests, kernel, "both", OF_KNOWN_KERNELS, UNKNOWN_KERNEL);
    }
    for rdma_core in RdmaCore::judges() {
        let modules = match rdma_core {
            RdmaCore::System => WITH_ORACLE,
            RdmaCore::Newest => WITH_NEWEST_ORACLE,
        };
        let place = rdma_core.place("both");
        if oracle::can_ask(*rdma_core) {
            add(&mut tests, kernel, &place, site, modules);
        } else {
            skip(&mut tests, kernel, &place, modules, oracle::CANNOT_ASK);
        }
    }
    tests
}

fn add(tests: &mut Suite, kernel: &str, place: &str, site: Site, modules: &[&'static [Case]]) {
    for case in modules.iter().copied().flatten() {
        let run = case.run;
        let name = format!("{kernel}/{place}/{}", case.name);
        tests.runs.insert(name.clone(), case);
        tests.planned.push(Planned::new(name, case.when(), move || {
            run(&site);
            Ok(())
        }));
    }
}

impl Case {
    fn when(&self) -> When {
        let is_of = |modules: &[&[Self]]| {
            let mut cases = modules.iter().copied().flatten();
            cases.any(|one| one.name == self.name)
        };
        let alone = [ALONE, ALONE_ON_RXE, COUNTED, WITH_DATAGRAMS];
        if alone.into_iter().any(is_of) {
            When::Alone
        } else if [QUIET, QUIET_ON_SIW].into_iter().any(is_of) {
            When::Quiet
        } else {
            When::Shared
        }
    }
}

/// Tests that cannot run there, by name and with the reason.
fn skip(tests: &mut Suite, kernel: &str, place: &str, modules: &[&[Case]], reason: &'static str) {
    for case in modules.iter().copied().flatten() {
        let name = format!("{kernel}/{place}/{}", case.name);
        tests.planned.push(Planned::skipped(name, reason));
    }
}

fn dialect_name(dialect: AddressAbi) -> &'static str {
    match dialect {
        AddressAbi::AnyFamily => "any-family",
        AddressAbi::IpOnly => "ip-only",
    }
}
