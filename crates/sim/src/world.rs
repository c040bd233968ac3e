//! All there is: the subnet, its machines and the clock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::machine::Machine;
use crate::subnet::Subnet;

/// All there is.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) subnet: Subnet,
    pub(crate) machines: Vec<Machine>,
}

/// The world under its lock.
#[derive(Debug)]
pub(crate) struct Locked {
    world: Mutex<World>,
    changed: Condvar,
}

impl World {
    /// Carries out what is due by now.
    pub(crate) fn settle(&mut self) {
        while let Some(work) = self.clock.take_due() {
            if let Some(machine) = self.machines.get_mut(work.machine()) {
                work.carry_out(machine);
            }
        }
    }
}

impl Locked {
    pub(crate) fn new() -> Self {
        Self {
            world: Mutex::new(World {
                clock: Clock::new(),
                subnet: Subnet::default(),
                machines: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// The world is whole between any two statements, so a panic elsewhere while
    /// it was locked leaves nothing broken.
    pub(crate) fn look(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the world, with all that follows at once, and tells those
    /// who wait.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.look();
        let outcome = change(&mut world);
        world.settle();
        drop(world);
        self.changed.notify_all();
        outcome
    }

    /// Sleeps until something changes.
    pub(crate) fn sleep<'world>(
        &self,
        world: MutexGuard<'world, World>,
    ) -> MutexGuard<'world, World> {
        self.changed
            .wait(world)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who sleep.
    pub(crate) fn tell(&self) {
        self.changed.notify_all();
    }
}
