//! Multicast groups of a socket.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmAddr, Error, EventKind, Gid, JoinFlags, MulticastGroup, Operation};
use rdmacm_verbs::QueuePair;

use super::address::DatagramAddr;
use super::socket::Socket;
use crate::attempt::Attempt;
use crate::connect::wait_for_event;
use crate::error::{Cause, Result};
use crate::event_loop::{EventQueue, ManagedId, QueuedEvent};
use crate::id_options::IdOptions;
use crate::stage::Stage;

/// The groups of a socket. Each has an id of its own, bound to the socket's address: an id
/// that listens cannot join a group.
#[derive(Debug)]
pub(super) struct Groups {
    id: IdOptions,
    members: Mutex<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    // Dropped before its id.
    membership: MulticastGroup,
    id: ManagedId,
    addr: DatagramAddr,
    /// Whether the queue pair is attached, so that it receives datagrams of the group.
    attached: bool,
}

impl Member {
    /// Detaches the queue pair from the group.
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
        self.members.lock()
    }

    fn take(&self, is_it: impl Fn(&Member) -> bool) -> Option<Member> {
        let mut members = self.members();
        let index = members.iter().position(is_it)?;
        Some(members.swap_remove(index))
    }

    fn queues(&self) -> Vec<Arc<EventQueue>> {
        let members = self.members();
        let queues = members.iter().map(|member| member.id.queue());
        queues.map(Arc::clone).collect()
    }

    /// Wakes a receiver when something comes for a group that the socket is a member of by now.
    pub(super) fn register(&self, key: u64, waker: &Waker) {
        for queue in self.queues() {
            queue.register(key, waker);
        }
    }

    pub(super) fn deregister(&self, key: u64) {
        for queue in self.queues() {
            queue.deregister(key);
        }
    }

    /// A group that was lost, once. The socket leaves it.
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
        // With the group lost, nothing can be done about a refusal.
        let _ = lost.detach(queue_pair);
        Some(Cause::GroupLost {
            group: lost.membership.address(),
            failure: failure?,
        })
    }
}

fn failure_of(member: &Member) -> Option<rdmacm_core::EventFailure> {
    while let Some(queued) = member.id.queue().pop() {
        if let QueuedEvent::Cm(event) = queued {
            if event.kind() == EventKind::MulticastError {
                return event.failure();
            }
        }
    }
    None
}

impl Socket {
    /// Joins a group, and attaches the queue pair as a full member.
    pub(crate) async fn join(
        &self,
        attempt: &Attempt,
        group_address: CmAddr,
        flags: JoinFlags,
    ) -> Result<DatagramAddr> {
        let stage = Stage::JoinMulticast;
        let refused = |error: Error| attempt.fail_on(self.id(), stage, error);
        let is_same = |member: &Member| member.membership.address().is_same_host(&group_address);
        let already = || self.groups.members().iter().any(is_same);
        if already() {
            return Err(self.fail(attempt, stage, member_already(group_address)));
        }
        let managed = self
            .groups
            .id
            .create(&attempt.event_loop, EventQueue::new());
        let managed = managed.map_err(refused)?;
        let source = self.address.with_port(0);
        managed.id().bind(source).map_err(refused)?;
        let membership = managed.id().join_multicast(group_address, flags);
        let membership = membership.map_err(refused)?;
        let joined = wait_for_event(attempt, &managed, stage, EventKind::MulticastJoin).await?;
        let Some(addr) = joined.ud().map(DatagramAddr::from) else {
            return Err(self.fail(attempt, stage, Cause::PeerGone));
        };
        let attached = flags == JoinFlags::FULL_MEMBER;
        let member = Member {
            membership,
            id: managed,
            addr,
            attached,
        };
        // Held, so that of two callers that join one group, none leaves it for the other.
        let mut members = self.groups.members();
        if members.iter().any(is_same) {
            drop(members);
            return Err(self.fail(attempt, stage, member_already(group_address)));
        }
        if attached {
            let (gid, lid) = group(&addr);
            if let Err(error) = self.queue_pair.queue_pair().attach(gid, lid) {
                drop(members);
                return Err(self.fail(attempt, stage, Cause::device(error)));
            }
        }
        members.push(member);
        drop(members);
        // They wait for events of the new group too from now on.
        self.queue_pair.wake_all();
        Ok(addr)
    }

    /// Leaves a group.
    pub(crate) fn leave_group(&self, attempt: &Attempt, group: CmAddr) -> Result<()> {
        let stage = Stage::LeaveMulticast;
        let member = self
            .groups
            .take(|member| member.membership.address().is_same_host(&group));
        let Some(member) = member else {
            return Err(self.fail(attempt, stage, no_member(group)));
        };
        let detached = member.detach(self.queue_pair.queue_pair());
        let left = member.membership.leave();
        detached.map_err(|error| self.fail(attempt, stage, Cause::device(error)))?;
        left.map_err(|error| self.fail(attempt, stage, error.into()))
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
