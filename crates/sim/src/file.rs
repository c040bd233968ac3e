//! An open file of the connection manager's device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::eventfd::EventFd;
use rdmacm_core::device::{Call, Device};
use rdmacm_core::{DeviceId, Error, InfinibandPort, RdmaDevice, Transport};

use crate::command::{Kernel, execute};
use crate::inbox::Inbox;
use crate::machine::Machine;
use crate::world::{Locked, World};

/// An open file of the connection manager's device on a host.
pub(crate) struct File {
    world: Arc<Locked>,
    machine: usize,
    serial: u64,
    eventfd: Arc<EventFd>,
}

impl File {
    pub(crate) fn new(
        world: Arc<Locked>,
        machine: usize,
        serial: u64,
        eventfd: Arc<EventFd>,
    ) -> Self {
        Self {
            world,
            machine,
            serial,
            eventfd,
        }
    }

    fn find<'world>(&self, world: &'world mut World) -> Option<&'world mut Inbox> {
        let machine = world.machines.get_mut(self.machine)?;
        machine.files.get_mut(&self.serial)
    }

    /// Changes this file's state; the answer is `false` once it is closed.
    fn change(&self, change: impl FnOnce(&mut Inbox) -> bool) -> bool {
        self.world.change(|world| {
            self.find(world).is_some_and(|file| {
                let outcome = change(file);
                file.tell();
                outcome
            })
        })
    }

    fn of_machine<T>(&self, look: impl FnOnce(&Machine) -> T) -> Option<T> {
        let world = self.world.look();
        world.machines.get(self.machine).map(look)
    }
}

impl Device for File {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let answer = self.world.change(|world| {
            let machine = world.machines.get_mut(self.machine);
            let mut kernel = Kernel {
                clock: &mut world.clock,
                subnet: &world.subnet,
                machine: machine.ok_or(nix::errno::Errno::ENXIO)?,
                index: self.machine,
                file: self.serial,
            };
            execute(&mut kernel, call)
        });
        answer.map_err(io::Error::from)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        let mut world = self.world.look();
        loop {
            if let Some(file) = self.find(&mut world) {
                if file.woken {
                    file.woken = false;
                    file.tell();
                    return Ok(true);
                }
                if file.look || !file.events.is_empty() {
                    return Ok(false);
                }
            }
            let next = world.clock.next();
            match (next, until) {
                (Some(next), until) if until.is_none_or(|until| next <= until) => {
                    world.clock.move_to(next);
                    world.settle();
                    // It may have been another's event.
                    self.world.tell();
                }
                (_, Some(until)) => {
                    world.clock.move_to(until);
                    return Ok(false);
                }
                (_, None) => world = self.world.sleep(world),
            }
        }
    }

    fn wake(&self) {
        self.change(|file| std::mem::replace(&mut file.woken, true));
    }

    fn take_wake(&self) -> bool {
        self.change(|file| std::mem::take(&mut file.woken))
    }

    fn look_again(&self) {
        self.change(|file| std::mem::replace(&mut file.look, true));
    }

    fn take_look(&self) -> bool {
        self.change(|file| std::mem::take(&mut file.look))
    }

    fn now(&self) -> Instant {
        self.world.look().clock.now()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        let index = usize::try_from(id.index?).ok()?;
        self.of_machine(|machine| {
            let adapter = machine.adapters.get(index)?;
            let is_it = adapter.guid == id.guid;
            is_it.then(|| RdmaDevice::new(id, &adapter.name, Transport::InfiniBand))
        })?
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>, Error> {
        let ports = self.of_machine(|machine| {
            let mut ports = Vec::new();
            for adapter in &machine.adapters {
                for (number, port) in adapter.numbered().filter(|(_, port)| port.is_active) {
                    let first = port.gids.first().copied();
                    ports.extend(
                        first.map(|gid| InfinibandPort::new(&adapter.name, number.into(), gid)),
                    );
                }
            }
            ports
        });
        Ok(ports.unwrap_or_default())
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("host", &self.machine)
            .field("file", &self.serial)
            .finish_non_exhaustive()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.world.change(|world| {
            if let Some(machine) = world.machines.get_mut(self.machine) {
                machine.close(self.serial);
            }
        });
    }
}
