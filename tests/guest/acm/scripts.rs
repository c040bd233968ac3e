//! The scripts.

use std::time::Duration;

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{CmAddr, PortSpace, QpType};
use rdmacm_tests::{Action, PATIENCE, SECOND, Site, Soft};

use super::messages::{
    ALTERNATE, PATH, USABLE, ip, known, message, of_kind, path, record_entry, refusal, send, source,
};
use super::question::{Question, Route, hinted, record};
use crate::schedule::When;

/// A question, and what ibacm does about it.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) daemon: Daemon,
    pub(super) actions: Vec<Action>,
    pub(super) question: Question,
    pub(super) theirs: Theirs,
    /// Whether the same is asked again, after the daemon has hung up.
    pub(super) twice: bool,
    /// What stands behind the header of the request, where that is the point.
    pub(super) asked: Option<Vec<u8>>,
    /// Whether our deadline ends it and not our patience with ibacm.
    pub(super) is_late: bool,
    /// How it shares the guest.
    pub(super) when: When,
}

/// Where ibacm listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Daemon {
    Absent,
    Unix,
    Tcp,
}

/// What librdmacm makes of it.
#[derive(Clone, Debug)]
pub(super) enum Theirs {
    /// What we do.
    Agrees,
    /// Something else; what we do it does if ibacm does this instead.
    Differs {
        instead: Vec<Action>,
        why: &'static str,
    },
    /// A signal ends it; the same.
    Dies {
        signal: i32,
        instead: Vec<Action>,
        why: &'static str,
    },
    /// It waits until ibacm hangs up.
    Hangs,
}

impl Script {
    /// About the IPv4 address of the device.
    fn new(name: &'static str, site: &Site, actions: Vec<Action>) -> Self {
        Self {
            name,
            daemon: Daemon::Unix,
            actions,
            question: Question::v4(site),
            theirs: Theirs::Agrees,
            twice: false,
            asked: None,
            is_late: false,
            when: When::Shared,
        }
    }

    /// Mostly waits for a timeout.
    fn waiting(mut self) -> Self {
        self.when = When::Waiting;
        self
    }

    fn about(mut self, question: Question) -> Self {
        self.question = question;
        self
    }

    fn asked(mut self, entries: &[Vec<u8>]) -> Self {
        self.asked = Some(entries.concat());
        self
    }

    fn differs(mut self, why: &'static str, instead: Vec<Action>) -> Self {
        self.theirs = Theirs::Differs { instead, why };
        self
    }

    fn dies(mut self, signal: i32, why: &'static str, instead: Vec<Action>) -> Self {
        self.theirs = Theirs::Dies {
            signal,
            instead,
            why,
        };
        self
    }

    pub(super) fn is_unasked(&self) -> bool {
        self.daemon == Daemon::Absent || self.question.flags.contains(AddrInfoFlags::PASSIVE)
    }

    pub(super) fn deadline(&self) -> Duration {
        if self.is_late { 10 * SECOND } else { PATIENCE }
    }

    pub(super) fn patience(&self, usual: Duration) -> Duration {
        match &self.theirs {
            _ if self.is_late => PATIENCE,
            Theirs::Hangs => usual,
            // What a busy guest may take to answer.
            _ if self.is_answered() => PATIENCE,
            _ => usual,
        }
    }

    /// Whether there is an end of the answer to wait for.
    fn is_answered(&self) -> bool {
        self.name != "half_an_answer"
    }
}

/// All of them, on this device. What is no answer is the same on each.
pub(super) fn all(site: &Site) -> Vec<Script> {
    let groups = match site.soft {
        Soft::Rxe => vec![
            unheard(site),
            refusals(site),
            answers(site),
            questions(site),
            lies(site),
            ends(site),
        ],
        Soft::Siw => vec![unheard(site), answers(site), questions(site)],
    };
    groups.into_iter().flatten().collect()
}

/// ibacm does not say anything, or is not asked.
fn unheard(site: &Site) -> Vec<Script> {
    let script = |name| Script::new(name, site, known(site));
    let passive = Question::v4(site).flags(AddrInfoFlags::PASSIVE);
    let mut absent = script("absent");
    absent.daemon = Daemon::Absent;
    let mut silent = Script::new("silent", site, Vec::new());
    (silent.theirs, silent.when) = (Theirs::Hangs, When::Waiting);
    let mut late = silent.clone();
    (late.name, late.is_late) = ("silent_until_the_deadline", true);
    vec![absent, script("passive").about(passive), silent, late]
}

/// Every status that there is, and one that there is not.
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

/// What ibacm can say.
fn answers(site: &Site) -> Vec<Script> {
    let v4 = source(site.v4);
    let says = |name, entries: &[Vec<u8>]| Script::new(name, site, send(message(entries)));
    let mut acknowledged = message(&[path(USABLE), v4.clone()]);
    acknowledged[1] = 0x81;
    let mut by_tcp = says("tcp", &[path(USABLE), v4.clone()]);
    by_tcp.daemon = Daemon::Tcp;
    let seven: Vec<_> = (0..7).map(|flags| path(0x2b ^ flags)).collect();
    vec![
        by_tcp,
        says("path_and_source", &[path(USABLE), v4.clone()]),
        says("path_and_source_v6", &[path(USABLE), source(site.v6)]).about(Question::v6(site)),
        says("source_and_path", &[v4.clone(), path(USABLE)]),
        Script::new("acknowledged", site, send(acknowledged)),
        says("two_paths", &[path(USABLE), path(ALTERNATE), v4.clone()]),
        says("a_path_of_no_use", &[path(ALTERNATE), v4.clone()]),
        says(
            "as_many_as_there_may_be",
            &[seven, vec![v4.clone()]].concat(),
        ),
        says("source_only", std::slice::from_ref(&v4)),
        says("nothing", &[]),
        says(
            "destination_too",
            &[path(USABLE), v4.clone(), ip(2, site.v4)],
        ),
        says(
            "unknown_kinds",
            &[path(USABLE), v4.clone(), of_kind(1), of_kind(0x77)],
        ),
        says("two_sources", &[path(USABLE), v4, source([10, 9, 9, 9])]),
    ]
}

/// What there is to ask.
fn questions(site: &Site) -> Vec<Script> {
    let script = |name, question| Script::new(name, site, known(site)).about(question);
    let v4 = || Question::v4(site);
    let to = |flags: u32| ip(2 | flags, site.v4);
    let from = |port| CmAddr::from((site.v4, port));
    let hint = record_entry(0, &hinted().record);
    let haste = 1 << 30;
    let figures = AddrInfoFlags::NUMERICHOST;
    let mut elsewhere = script("source_given_and_another_told", v4().source(from(0)));
    elsewhere.actions = send(message(&[path(USABLE), source([10, 9, 9, 9])]));
    let mut alone = script("source_given", v4().source(from(0)));
    alone.actions = send(message(&[path(USABLE)]));
    let v6 = CmAddr::from((site.v6, 0));
    let mut alone_v6 = script("source_given_v6", Question::v6(site).source(v6));
    alone_v6.actions = send(message(&[path(USABLE)]));
    vec![
        alone.asked(&[ip(1, site.v4), to(0)]),
        alone_v6.asked(&[ip(1, site.v6), ip(2, site.v6)]),
        elsewhere,
        script("source_with_a_port", v4().source(from(7999))),
        script("figures", v4().flags(figures)).asked(&[to(haste)]),
        script("no_route", v4().flags(AddrInfoFlags::NOROUTE)).asked(&[to(haste)]),
        script("route_as_a_record", v4().route(Route::Record)).asked(&[to(0), hint.clone()]),
        script("route_as_data", v4().route(Route::Data)).asked(&[to(0), hint.clone()]),
        script("route_of_two", v4().route(Route::TwoData)).asked(&[to(0), of_kind(PATH)]),
        script(
            "route_source_and_haste",
            v4().route(Route::Data).source(from(0)).flags(figures),
        )
        .asked(&[ip(1, site.v4), to(haste), hint]),
        // The IP source of the other scripts is none to start from here.
        Script::new("a_gid", site, send(message(&[path(USABLE)]))).about(Question::native(site)),
        script("datagrams", v4().kind(PortSpace::UDP, QpType::UD)),
        script("infiniband_ports", v4().kind(PortSpace::IB, QpType::RC)),
        script("an_address_for_a_name", Question::destination(site)).asked(&[to(0)]),
    ]
}

/// What ibacm does not say.
fn lies(site: &Site) -> Vec<Script> {
    let v4 = source(site.v4);
    let says = |name, entries: &[Vec<u8>]| Script::new(name, site, send(message(entries)));
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
    let no_source = "librdmacm reads the source address that it has not got";
    let unchecked = "librdmacm looks at the length and the status alone";
    let mut strange = record();
    strange.flow_label_hop_limit = 0x8abc_de40.into();
    let mut strange = record_entry(USABLE, &strange);
    strange[6..8].fill(0xff);
    strange[66..72].fill(0xff);
    vec![
        says("no_source", &[path(USABLE)]).dies(libc::SIGSEGV, no_source, known(site)),
        says("no_source_v6", &[path(USABLE)])
            .about(Question::v6(site))
            .dies(
                libc::SIGSEGV,
                no_source,
                send(message(&[path(USABLE), source(site.v6)])),
            ),
        says(
            "source_of_the_other_family",
            &[path(USABLE), source(site.v6)],
        )
        .differs(
            "librdmacm takes an IPv6 address for an IPv4 one",
            known(site),
        ),
        says(
            "source_of_nobody",
            &[path(USABLE), source([203, 0, 113, 9])],
        )
        .differs(
            "librdmacm does not ask the kernel whether it may start there",
            known(site),
        ),
        says("paths_apart", &[path(USABLE), v4.clone(), path(ALTERNATE)]).differs(
            "librdmacm takes what stands behind the first path for the second",
            send(message(&[path(USABLE), path(ALTERNATE), v4.clone()])),
        ),
        says("reserved_bits", &[strange, v4])
            .differs("librdmacm hands on what is reserved", known(site)),
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

/// How an answer ends.
fn ends(site: &Site) -> Vec<Script> {
    let whole = message(&[path(USABLE), source(site.v4)]);
    let cut = |length: usize| vec![Action::Send(whole[..length].to_vec()), Action::Close];
    let sg_list = |size| -> Vec<_> {
        let sg_list = whole.chunks(size).map(<[u8]>::to_vec);
        sg_list.map(Action::Send).collect()
    };
    let once = "librdmacm takes what it gets at once for all";
    let mut gone = Script::new("gone_between_two_questions", site, {
        let mut actions = known(site);
        actions.push(Action::Close);
        actions
    })
    .dies(
        libc::SIGPIPE,
        "librdmacm writes to a daemon that has gone",
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
