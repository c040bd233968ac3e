//! The list of scripts.

use std::time::Duration;

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{CmAddr, PortSpace, QpType};
use rdmacm_tests::{Action, PATIENCE, SECOND, Site, Soft};

use super::messages::{
    ALTERNATE, PATH, USABLE, ip, known, message, of_kind, path, record_entry, refusal, send, source,
};
use super::question::{PathsHint, Question, hinted, record};
use crate::schedule::When;

/// The script whose source is no address of this machine.
pub(super) const SOURCE_OF_NOBODY: &str = "source_of_nobody";

/// A question, and ibacm's answer.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) daemon: Daemon,
    pub(super) actions: Vec<Action>,
    pub(super) question: Question,
    pub(super) librdmacm: Librdmacm,
    /// Whether the lookup is repeated after the daemon has closed the connection.
    pub(super) twice: bool,
    /// The expected request after its header, if the script checks it.
    pub(super) expected_request: Option<Vec<u8>>,
    /// Whether the lookup ends at its deadline rather than at the timeout for ibacm.
    pub(super) is_late: bool,
    /// How it shares the guest with other tests.
    pub(super) when: When,
}

/// Where ibacm listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Daemon {
    Absent,
    Unix,
    Tcp,
}

/// librdmacm's result.
#[derive(Clone, Debug)]
pub(super) enum Librdmacm {
    /// The same as this library's.
    Agrees,
    /// Another result. This library's result equals librdmacm's for the answer
    /// `instead`.
    Differs {
        instead: Vec<Action>,
        why: &'static str,
    },
    /// A signal ends librdmacm's process. This library's result equals librdmacm's for
    /// `instead`.
    Dies {
        signal: i32,
        instead: Vec<Action>,
        why: &'static str,
    },
    /// librdmacm waits until ibacm closes the connection.
    Hangs,
}

impl Script {
    /// A script for the device's IPv4 address.
    fn new(name: &'static str, site: &Site, actions: Vec<Action>) -> Self {
        Self {
            name,
            daemon: Daemon::Unix,
            actions,
            question: Question::v4(site),
            librdmacm: Librdmacm::Agrees,
            twice: false,
            expected_request: None,
            is_late: false,
            when: When::Shared,
        }
    }

    /// It mostly waits for a timeout.
    fn waiting(mut self) -> Self {
        self.when = When::Waiting;
        self
    }

    fn about(mut self, question: Question) -> Self {
        self.question = question;
        self
    }

    fn expects(mut self, entries: &[Vec<u8>]) -> Self {
        self.expected_request = Some(entries.concat());
        self
    }

    fn differs(mut self, why: &'static str, instead: Vec<Action>) -> Self {
        self.librdmacm = Librdmacm::Differs { instead, why };
        self
    }

    fn dies(mut self, signal: i32, why: &'static str, instead: Vec<Action>) -> Self {
        self.librdmacm = Librdmacm::Dies {
            signal,
            instead,
            why,
        };
        self
    }

    pub(super) fn sends_no_request(&self) -> bool {
        self.daemon == Daemon::Absent || self.question.flags.contains(AddrInfoFlags::PASSIVE)
    }

    pub(super) fn deadline(&self) -> Duration {
        if self.is_late { 10 * SECOND } else { PATIENCE }
    }

    pub(super) fn patience(&self, usual: Duration) -> Duration {
        match &self.librdmacm {
            _ if self.is_late => PATIENCE,
            Librdmacm::Hangs => usual,
            // A busy guest may need longer to answer.
            _ if self.is_answered() => PATIENCE,
            _ => usual,
        }
    }

    /// Whether the answer is complete.
    fn is_answered(&self) -> bool {
        self.name != "half_an_answer"
    }
}

/// All scripts for this device. Invalid answers are the same for each device.
pub(super) fn all(site: &Site) -> Vec<Script> {
    let groups = match site.soft {
        Soft::Rxe => vec![
            without_answer(site),
            refusals(site),
            answers(site),
            questions(site),
            invalid_answers(site),
            ends(site),
        ],
        Soft::Siw => vec![without_answer(site), answers(site), questions(site)],
    };
    groups.into_iter().flatten().collect()
}

/// ibacm sends nothing, or receives no request.
fn without_answer(site: &Site) -> Vec<Script> {
    let script = |name| Script::new(name, site, known(site));
    let passive = Question::v4(site).flags(AddrInfoFlags::PASSIVE);
    let mut absent = script("absent");
    absent.daemon = Daemon::Absent;
    let mut silent = Script::new("silent", site, Vec::new());
    (silent.librdmacm, silent.when) = (Librdmacm::Hangs, When::Waiting);
    let mut late = silent.clone();
    (late.name, late.is_late) = ("silent_until_the_deadline", true);
    vec![absent, script("passive").about(passive), silent, late]
}

/// Every status, and an unknown one.
fn refusals(site: &Site) -> Vec<Script> {
    let statuses = [
        ("status_no_memory", 1),
        ("status_invalid", 2),
        ("status_no_data", 3),
        ("status_not_connected", 5),
        ("status_timed_out", 6),
        ("status_source_address", 7),
        ("status_source_type", 8),
        ("status_destination_address", 9),
        ("status_destination_type", 10),
        ("status_unknown", 255),
    ];
    let refused = statuses.map(|(name, status)| Script::new(name, site, refusal(status)));
    let mut message = message(&[path(USABLE), source(site.v4)]);
    message[2] = 3;
    let all_the_same = Script::new("status_with_entries", site, send(message));
    refused.into_iter().chain([all_the_same]).collect()
}

/// Valid answers.
fn answers(site: &Site) -> Vec<Script> {
    let v4 = source(site.v4);
    let answering = |name, entries: &[Vec<u8>]| Script::new(name, site, send(message(entries)));
    let mut acknowledged = message(&[path(USABLE), v4.clone()]);
    acknowledged[1] = 0x81;
    let mut by_tcp = answering("tcp", &[path(USABLE), v4.clone()]);
    by_tcp.daemon = Daemon::Tcp;
    let seven: Vec<_> = (0..7).map(|flags| path(0x2b ^ flags)).collect();
    vec![
        by_tcp,
        answering("path_and_source", &[path(USABLE), v4.clone()]),
        answering("path_and_source_v6", &[path(USABLE), source(site.v6)]).about(Question::v6(site)),
        answering("source_and_path", &[v4.clone(), path(USABLE)]),
        Script::new("acknowledged", site, send(acknowledged)),
        answering("two_paths", &[path(USABLE), path(ALTERNATE), v4.clone()]),
        answering("a_path_of_no_use", &[path(ALTERNATE), v4.clone()]),
        answering(
            "as_many_as_there_may_be",
            &[seven, vec![v4.clone()]].concat(),
        ),
        answering("source_only", std::slice::from_ref(&v4)),
        answering("nothing", &[]),
        answering(
            "destination_too",
            &[path(USABLE), v4.clone(), ip(2, site.v4)],
        ),
        answering(
            "unknown_kinds",
            &[path(USABLE), v4.clone(), of_kind(1), of_kind(0x77)],
        ),
        answering("two_sources", &[path(USABLE), v4, source([10, 9, 9, 9])]),
    ]
}

/// All forms of questions.
fn questions(site: &Site) -> Vec<Script> {
    let script = |name, question| Script::new(name, site, known(site)).about(question);
    let v4 = || Question::v4(site);
    let to = |flags: u32| ip(2 | flags, site.v4);
    let from = |port| CmAddr::from((site.v4, port));
    let hint = record_entry(0, &hinted().record);
    let haste = 1 << 30;
    let figures = AddrInfoFlags::NUMERICHOST;
    let mut elsewhere = script("source_given_and_another_answered", v4().source(from(0)));
    elsewhere.actions = send(message(&[path(USABLE), source([10, 9, 9, 9])]));
    let mut alone = script("source_given", v4().source(from(0)));
    alone.actions = send(message(&[path(USABLE)]));
    let v6 = CmAddr::from((site.v6, 0));
    let mut alone_v6 = script("source_given_v6", Question::v6(site).source(v6));
    alone_v6.actions = send(message(&[path(USABLE)]));
    vec![
        alone.expects(&[ip(1, site.v4), to(0)]),
        alone_v6.expects(&[ip(1, site.v6), ip(2, site.v6)]),
        elsewhere,
        script("source_with_a_port", v4().source(from(7999))),
        script("figures", v4().flags(figures)).expects(&[to(haste)]),
        script("no_route", v4().flags(AddrInfoFlags::NOROUTE)).expects(&[to(haste)]),
        script("route_as_a_record", v4().paths(PathsHint::Record)).expects(&[to(0), hint.clone()]),
        script("route_as_data", v4().paths(PathsHint::Data)).expects(&[to(0), hint.clone()]),
        script("route_of_two", v4().paths(PathsHint::TwoData)).expects(&[to(0), of_kind(PATH)]),
        script(
            "route_source_and_haste",
            v4().paths(PathsHint::Data).source(from(0)).flags(figures),
        )
        .expects(&[ip(1, site.v4), to(haste), hint]),
        // The IP source of the other scripts is not an address of this device.
        Script::new("a_gid", site, send(message(&[path(USABLE)]))).about(Question::native(site)),
        script("datagrams", v4().kind(PortSpace::UDP, QpType::UD)),
        script("infiniband_ports", v4().kind(PortSpace::IB, QpType::RC)),
        script("an_address_for_a_name", Question::destination(site)).expects(&[to(0)]),
    ]
}

/// Answers that ibacm never sends.
fn invalid_answers(site: &Site) -> Vec<Script> {
    let v4 = source(site.v4);
    let answering = |name, entries: &[Vec<u8>]| Script::new(name, site, send(message(entries)));
    let changed = |name, place: usize, value: u8| {
        let mut message = message(&[path(USABLE), source(site.v4)]);
        message[place] = value;
        Script::new(name, site, send(message))
    };
    let length = |name, length: u16, sent: usize| {
        let mut bytes = message(&[path(USABLE), source(site.v4)]);
        bytes.resize(sent, 0);
        bytes[6..8].copy_from_slice(&length.to_ne_bytes());
        Script::new(name, site, send(bytes))
    };
    let no_source = "librdmacm reads a source address that it does not have";
    let unchecked = "librdmacm checks only length and status";
    let mut strange = record();
    strange.flow_label_hop_limit = 0x8abc_de40.into();
    let mut strange = record_entry(USABLE, &strange);
    strange[6..8].fill(0xff);
    strange[66..72].fill(0xff);
    vec![
        answering("no_source", &[path(USABLE)]).dies(libc::SIGSEGV, no_source, known(site)),
        answering("no_source_v6", &[path(USABLE)])
            .about(Question::v6(site))
            .dies(
                libc::SIGSEGV,
                no_source,
                send(message(&[path(USABLE), source(site.v6)])),
            ),
        answering(
            "source_of_the_other_family",
            &[path(USABLE), source(site.v6)],
        )
        .differs(
            "librdmacm takes an IPv6 address for an IPv4 one",
            known(site),
        ),
        answering(SOURCE_OF_NOBODY, &[path(USABLE), source([203, 0, 113, 9])]).differs(
            "librdmacm does not query the kernel about the source address",
            known(site),
        ),
        answering("paths_apart", &[path(USABLE), v4.clone(), path(ALTERNATE)]).differs(
            "librdmacm takes the entry after the first path for a second path",
            send(message(&[path(USABLE), path(ALTERNATE), v4.clone()])),
        ),
        answering("reserved_bits", &[strange, v4])
            .differs("librdmacm returns reserved bits", known(site)),
        changed("wrong_version", 0, 2).differs(unchecked, refusal(3)),
        changed("wrong_operation", 1, 2).differs(unchecked, refusal(3)),
        changed("wrong_transaction", 8, 1).differs(unchecked, refusal(3)),
        length("length_with_a_rest", 16 + 2 * 72 + 10, 16 + 2 * 72 + 10)
            .differs("librdmacm rounds it down", refusal(3)),
        length("length_of_no_entry", 87, 87),
        length("length_below_the_header", 10, 16 + 2 * 72),
        length("length_too_short", 16 + 72, 16 + 2 * 72),
        length("length_beyond_the_most", 16 + 9 * 72, 16 + 9 * 72),
        length("length_of_all_there_is", u16::MAX, 16 + 8 * 72),
        Script::new("two_answers", site, {
            let once = message(&[path(USABLE), source(site.v4)]);
            send([once.clone(), once].concat())
        }),
        Script::new("noise", site, send(vec![0xa5; 592])),
    ]
}

/// Answers that end early, or end the connection.
fn ends(site: &Site) -> Vec<Script> {
    let whole = message(&[path(USABLE), source(site.v4)]);
    let cut = |length: usize| vec![Action::Send(whole[..length].to_vec()), Action::Close];
    let sg_list = |size| -> Vec<_> {
        let sg_list = whole.chunks(size).map(<[u8]>::to_vec);
        sg_list.map(Action::Send).collect()
    };
    let once = "librdmacm takes the first read for the whole answer";
    let mut gone = Script::new("gone_between_two_questions", site, {
        let mut actions = known(site);
        actions.push(Action::Close);
        actions
    })
    .dies(
        libc::SIGPIPE,
        "librdmacm writes to a closed connection",
        known(site),
    );
    gone.twice = true;
    vec![
        Script::new("closed", site, vec![Action::Close]),
        Script::new("closed_in_the_header", site, cut(10)),
        Script::new("closed_behind_the_header", site, cut(16)),
        Script::new("closed_in_an_entry", site, cut(100)),
        Script::new("half_an_answer", site, send(whole[..100].to_vec())).waiting(),
        Script::new("header_first", site, sg_list(16)).differs(once, known(site)),
        Script::new("in_pieces", site, sg_list(7)).differs(once, known(site)),
        gone,
    ]
}
