//! librdmacm as the reference for name resolution.
//!
//! `rdma_getaddrinfo` (`tests/c/getaddrinfo.c`, with the system's librdmacm and the
//! newest one) and this library answer many combinations of questions ([`questions`]),
//! in one process each and with a name server ([`environment`]). Results must be of one
//! class, and C's entry must equal, word by word, the entry of this library that is
//! first in the system's order, because C returns one entry without a query to the
//! kernel. `differences.txt` lists intended differences with their reasons.

use std::path::Path;
use std::time::{Duration, Instant};

use rdmacm_addrinfo::{AddrInfo, AddrInfoResolver, Hints};
use rdmacm_core::AddressAbi;
use rdmacm_tests::Site;

use crate::child;
use crate::rdma_core::RdmaCore;
use rdmacm_tests_macros::case;

mod answer;
mod c_library;
mod differences;
mod environment;
mod question;
mod questions;

use c_library::{CLibrary, PROGRAM};
use differences::Differences;
use environment::NAME_SERVER;
use question::Question;

/// With fewer questions the comparison proves nothing.
const LEAST: usize = 400;

/// The reason why the questions cannot be answered.
pub(crate) const CANNOT_ASK: &str = "there is no dnsmasq, or tests/c/getaddrinfo.c was not built: it takes gcc and librdmacm's headers";

/// Whether both programs and the name server exist.
pub(crate) fn can_ask(rdma_core: RdmaCore) -> bool {
    rdma_core.program(PROGRAM).exists() && Path::new(NAME_SERVER).exists()
}

/// The C library reads much of `/etc` once in a process.
#[case(waiting, needs(CLibrary))]
fn answers_match_librdmacm() {
    child::run("getaddrinfo");
}

#[case(waiting, needs(CLibrary))]
fn a_dead_first_name_server_times_out() {
    child::run("dead_name_server");
}

/// In a child: the C library tries the second server after five seconds, which is
/// within the default deadline.
pub(crate) fn wait_out_a_dead_server() {
    const PATIENCE_OF_THE_SYSTEM: Duration = Duration::from_secs(5);
    environment::run_behind_a_dead_server(|| {
        let question = Question {
            node: Some("four.test".to_owned()),
            service: Some("7471".to_owned()),
            ..Question::default()
        };
        let c = answer::of_c(&CLibrary::start(RdmaCore::System).ask(&question));
        assert!(answer::is_success(&c), "{c:?}");
        let started = Instant::now();
        let found = rdmacm_addrinfo::resolve("four.test", "7471", &Hints::rc()).unwrap();
        assert!(started.elapsed() >= PATIENCE_OF_THE_SYSTEM);
        assert!(found.iter().all(AddrInfo::is_reachable), "{found:?}");
    });
}

#[case(waiting, newest_rdma_core, needs(NewestCLibrary))]
fn answers_match_the_newest_librdmacm() {
    child::run("newest_getaddrinfo");
}

/// In a child: answers all questions with both libraries and compares.
pub(crate) fn ask(rdma_core: RdmaCore) {
    let release = rdma_core.release(PROGRAM);
    environment::run(rdma_core, || {
        let questions = questions::all(&Site::rxe(AddressAbi::AnyFamily), release);
        assert!(questions.len() >= LEAST, "{}", questions.len());
        let complaints = judge(&questions, rdma_core, release);
        assert!(
            complaints.is_empty(),
            "{} complaints about {} questions:\n{}",
            complaints.len(),
            questions.len(),
            complaints.join("\n")
        );
    });
}

fn judge(questions: &[Question], rdma_core: RdmaCore, release: u32) -> Vec<String> {
    let differences = Differences::of(release);
    let mut c_library = CLibrary::start(rdma_core);
    let resolver = AddrInfoResolver::new();
    let mut complaints = Vec::new();
    for question in questions {
        let c = answer::of_c(&c_library.ask(question));
        let (ours, via) = answer::of_ours(&resolver, question);
        let mut facts = question.facts();
        facts.insert("via", via);
        let wrong = differences.judge(&facts, &c, &ours);
        complaints.extend(wrong.iter().map(|wrong| format!("{question}: {wrong}")));
    }
    complaints.extend(differences.missing());
    complaints
}
