//! Multicast groups of a socket.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmAddr, Error, EventKind, Family, Gid, JoinFlags, MulticastGroup, Operation};
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

    /// Takes out a member, whose queue pair is detached. Under the lock, under which another
    /// caller that joins the group attaches it.
    fn take(
        &self,
        queue_pair: &QueuePair,
        is_it: impl Fn(&Member) -> bool,
    ) -> Option<(Member, rdmacm_verbs::Result<()>)> {
        let mut members = self.members();
        let index = members.iter().position(is_it)?;
        let member = members.swap_remove(index);
        let detached = member.detach(queue_pair);
        Some((member, detached))
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
        let failure = Cell::new(None);
        let is_lost = |member: &Member| {
            failure.set(failure_of(member));
            failure.get().is_some()
        };
        // With the group lost, nothing can be done about a refusal.
        let (lost, _) = self.take(queue_pair, is_lost)?;
        Some(Cause::GroupLost {
            group: lost.membership.address(),
            failure: failure.get()?,
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
        if self.groups.members().iter().any(is_same) {
            return Err(self.fail(attempt, stage, member_already(group_address)));
        }
        self.check_group(group_address)
            .map_err(|cause| self.fail(attempt, stage, cause))?;
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

    /// Refuses addresses that the kernel would join.
    fn check_group(&self, group: CmAddr) -> Result<(), Cause> {
        let refused = |reason| Err(invalid(Operation::JoinMulticast(group), reason));
        let ip = group.ip();
        if ip.is_some_and(|ip| !ip.is_multicast() && !ip.is_unspecified()) {
            // On RoCE it would be the network's group of it, of which nobody else is a member.
            return refused("it is the address of one host");
        }
        if (self.address.family(), group.family()) == (Family::V6, Family::V4) {
            // The device could not send from an IPv6 address.
            return refused("an IPv4 group, and the socket has an IPv6 address");
        }
        Ok(())
    }

    /// Leaves a group.
    pub(crate) fn leave_group(&self, attempt: &Attempt, group: CmAddr) -> Result<()> {
        let stage = Stage::LeaveMulticast;
        let is_it = |member: &Member| member.membership.address().is_same_host(&group);
        let taken = self.groups.take(self.queue_pair.queue_pair(), is_it);
        let Some((member, detached)) = taken else {
            return Err(self.fail(attempt, stage, no_member(group)));
        };
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
