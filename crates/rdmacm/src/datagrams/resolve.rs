//! Asking a peer where its datagrams go to.

use std::sync::Arc;

use rdmacm_addrinfo::Directory;
use rdmacm_core::{CmAddr, Deadline, EventKind, UdParam};

use super::address::DatagramPeer;
use super::options::Choices;
use crate::error::{Cause, Result};
use crate::hub::Hub;
use crate::plan::Plan;
use crate::step::Step;
use crate::steps::{Attempt, Dial, Peer, Source, Way, arrived, resolve};

/// A peer that answered, and from which address it was asked.
pub(super) struct Answered {
    pub(super) peer: DatagramPeer,
    pub(super) source: Option<CmAddr>,
}

/// Asks the first that answers of a peer's addresses.
pub(super) async fn ask_any(
    hub: &Arc<Hub>,
    directory: &Directory,
    peer: &Peer,
    choices: &Choices,
    source: Option<CmAddr>,
    deadline: Deadline,
) -> Result<Answered> {
    let plan = Plan {
        options: choices.id,
        source: source.map_or(Source::Routes, Source::Address),
        deadline,
        retry: choices.retry,
        ..Plan::default()
    };
    let dial = Dial {
        hub,
        directory,
        peer,
        plan: &plan,
    };
    let question = &choices.question;
    dial.first(&|attempt, way| {
        let plan = &plan;
        Box::pin(async move { ask(&attempt, plan, &way, question).await })
    })
    .await
}

/// Resolves address and route, and asks (SIDR).
async fn ask(attempt: &Attempt, plan: &Plan, way: &Way, question: &UdParam) -> Result<Answered> {
    let step = Step::Connect;
    let routed = resolve(attempt, plan, way).await?;
    let id = routed.tracked.id();
    id.connect(question)
        .map_err(|error| attempt.fail_on(id, step, error))?;
    let answer = arrived(attempt, &routed.tracked, step, EventKind::Established).await?;
    let told = answer.ud();
    let told = told.ok_or_else(|| attempt.fail_on(id, step, Cause::Gone))?;
    let source = id.local_addr();
    Ok(Answered {
        peer: DatagramPeer {
            addr: told.into(),
            private_data: answer.private_data().to_vec(),
        },
        source: source.map_err(|error| attempt.fail_on(id, step, error))?,
    })
}
