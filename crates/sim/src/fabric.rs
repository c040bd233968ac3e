//! The subnet that hosts share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::ServiceRecord;

use crate::adapter::Adapter;
use crate::host::Host;
use crate::machine::Machine;
use crate::world::Locked;

/// An InfiniBand subnet, its administrator and its clock.
///
/// A clone is the same subnet.
#[derive(Clone, Debug)]
pub struct Fabric {
    world: Arc<Locked>,
}

/// How the subnet administrator takes questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Administrator {
    /// It answers what it knows.
    #[default]
    Answers,
    /// It refuses every question; the kernel reports `EINVAL`.
    Refuses,
    /// It does not answer; the kernel reports `ETIMEDOUT` in the end.
    Silent,
}

impl Default for Fabric {
    fn default() -> Self {
        Self::new()
    }
}

impl Fabric {
    /// A subnet without hosts and services, whose administrator answers at once.
    #[must_use]
    pub fn new() -> Self {
        Self {
            world: Arc::new(Locked::new()),
        }
    }

    /// One more host, with these adapters, all of whose ports are on the subnet.
    #[must_use]
    pub fn host(&self, adapters: impl IntoIterator<Item = Adapter>) -> Host {
        let adapters: Vec<_> = adapters.into_iter().collect();
        let index = self.world.change(|world| {
            for port in adapters.iter().flat_map(|adapter| &adapter.ports) {
                world.subnet.attach(port.clone());
            }
            world.machines.push(Machine::new(adapters));
            world.machines.len() - 1
        });
        Host::new(Arc::clone(&self.world), index)
    }

    /// Registers a service with the administrator.
    pub fn offer(&self, service: ServiceRecord) {
        self.world
            .change(|world| world.subnet.services.push(service));
    }

    /// How the administrator takes questions from now on.
    pub fn set_administrator(&self, administrator: Administrator) {
        self.world
            .change(|world| world.subnet.administrator = administrator);
    }

    /// How long the administrator takes for an answer from now on.
    pub fn set_administrator_delay(&self, delay: Duration) {
        self.world.change(|world| world.subnet.delay = delay);
    }

    /// The time by the fabric's clock, which all of its hosts go by.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.world.look().clock.now()
    }

    /// Lets time pass, with all that happens meanwhile.
    pub fn advance(&self, time: Duration) {
        self.world.change(|world| {
            let Some(end) = world.clock.now().checked_add(time) else {
                return;
            };
            while let Some(next) = world.clock.next().filter(|next| *next <= end) {
                world.clock.move_to(next);
                world.settle();
            }
            world.clock.move_to(end);
        });
    }
}
