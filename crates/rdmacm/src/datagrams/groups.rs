//! Multicast groups of a socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use rdmacm_core::{CmAddr, Error, EventKind, Gid, JoinFlags, MulticastGroup, Operation};
use rdmacm_verbs::QueuePair;

use super::address::DatagramAddr;
use super::open::Open;
use crate::error::{Cause, Result};
use crate::hub::{Letter, Mailbox, Tracked};
use crate::id_options::IdOptions;
use crate::step::Step;
use crate::steps::{Attempt, arrived};

/// The groups a socket is in. Each has an id of its own, bound to the socket's address:
/// one that listens joins none.
#[derive(Debug)]
pub(super) struct Groups {
    id: IdOptions,
    members: Mutex<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    // Left before its id goes.
    membership: MulticastGroup,
    tracked: Tracked,
    addr: DatagramAddr,
    /// Whether the queue pair receives what is sent to the group.
    attached: bool,
}

impl Member {
    /// The queue pair receives the group no more.
    fn detach(&self, queue_pair: &QueuePair) -> rdmacm_verbs::Result<()> {
        if !self.attached {
            return Ok(());
        }
        let (gid, lid) = group(&self.addr);
        queue_pair.detach(gid, lid)
    }
}

fn group(addr: &DatagramAddr) -> (Gid, u16) {
    let gid = Gid(addr.ah_attr.grh.destination_gid);
    (gid, addr.ah_attr.destination_lid)
}

impl Groups {
    pub(super) fn new(id: IdOptions) -> Self {
        Self {
            id,
            members: Mutex::default(),
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, is_it: impl Fn(&Member) -> bool) -> Option<Member> {
        let mut members = self.members();
        let index = members.iter().position(is_it)?;
        Some(members.swap_remove(index))
    }

    fn mailboxes(&self) -> Vec<Arc<Mailbox>> {
        let members = self.members();
        let mailboxes = members.iter().map(|member| member.tracked.mailbox());
        mailboxes.map(Arc::clone).collect()
    }

    pub(super) fn wait(&self, key: u64, waker: &Waker) {
        for mailbox in self.mailboxes() {
            mailbox.wait(key, waker);
        }
    }

    pub(super) fn leave_waiters(&self, key: u64) {
        for mailbox in self.mailboxes() {
            mailbox.leave(key);
        }
    }

    /// A group that was lost, once; it is left.
    pub(super) fn take_lost(&self, queue_pair: &QueuePair) -> Option<Cause> {
        let mut failure = None;
        let mut lost = None;
        {
            let mut members = self.members();
            for index in 0..members.len() {
                failure = members.get(index).and_then(failure_of);
                if failure.is_some() {
                    lost = Some(members.swap_remove(index));
                    break;
                }
            }
        }
        let lost = lost?;
        // With the group gone there is nothing to be done about a refusal.
        let _ = lost.detach(queue_pair);
        Some(Cause::GroupLost {
            group: lost.membership.address(),
            failure: failure?,
        })
    }
}

fn failure_of(member: &Member) -> Option<rdmacm_core::EventFailure> {
    while let Some(letter) = member.tracked.mailbox().take() {
        if let Letter::Event(event) = letter {
            if event.kind() == EventKind::MulticastError {
                return event.failure();
            }
        }
    }
    None
}

impl Open {
    /// Joins a group, and has the queue pair receive what is sent to it if that is a
    /// full member's.
    pub(super) async fn join(
        &self,
        attempt: &Attempt,
        group_address: CmAddr,
        flags: JoinFlags,
    ) -> Result<DatagramAddr> {
        let step = Step::JoinMulticast;
        let refused = |error: Error| attempt.fail_on(self.id(), step, error);
        let is_same = |member: &Member| member.membership.address().is_same_host(&group_address);
        let already = || self.groups.members().iter().any(is_same);
        if already() {
            return Err(self.fail(attempt, step, member_already(group_address)));
        }
        let options = self.groups.id;
        let id = options.create(&attempt.hub.channel).map_err(refused)?;
        let tracked = Tracked::new(&attempt.hub, id, Mailbox::new());
        options.apply(tracked.id()).map_err(refused)?;
        let source = self.address.with_port(0);
        tracked.id().bind(source).map_err(refused)?;
        let membership = tracked.id().join_multicast(group_address, flags);
        let membership = membership.map_err(refused)?;
        let joined = arrived(attempt, &tracked, step, EventKind::MulticastJoin).await?;
        let Some(addr) = joined.ud().map(DatagramAddr::from) else {
            return Err(self.fail(attempt, step, Cause::Gone));
        };
        let attached = flags == JoinFlags::FULL_MEMBER;
        let member = Member {
            membership,
            tracked,
            addr,
            attached,
        };
        // Held, so that two who join one group do not leave it under each other.
        let mut members = self.groups.members();
        if members.iter().any(is_same) {
            drop(members);
            return Err(self.fail(attempt, step, member_already(group_address)));
        }
        if attached {
            let (gid, lid) = group(&addr);
            if let Err(error) = self.traffic.queue_pair().attach(gid, lid) {
                drop(members);
                return Err(self.fail(attempt, step, error.into()));
            }
        }
        members.push(member);
        Ok(addr)
    }

    /// Leaves a group.
    pub(super) fn leave_group(&self, attempt: &Attempt, group: CmAddr) -> Result<()> {
        let step = Step::LeaveMulticast;
        let member = self
            .groups
            .take(|member| member.membership.address().is_same_host(&group));
        let Some(member) = member else {
            return Err(self.fail(attempt, step, no_member(group)));
        };
        let detached = member.detach(self.traffic.queue_pair());
        let left = member.membership.leave();
        detached.map_err(|error| self.fail(attempt, step, error.into()))?;
        left.map_err(|error| self.fail(attempt, step, error.into()))
    }
}

fn member_already(group: CmAddr) -> Cause {
    invalid(
        Operation::JoinMulticast(group),
        "the socket is a member already",
    )
}

fn no_member(group: CmAddr) -> Cause {
    invalid(
        Operation::LeaveMulticast(group),
        "the socket is not a member",
    )
}

fn invalid(operation: Operation, reason: &'static str) -> Cause {
    let operation = Box::new(operation);
    Cause::Refused(Error::InvalidInput { operation, reason })
}
