//! An open file of the connection manager's device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use rdmacm_core::ucma::{Call, UcmaFile};

use crate::command::{Kernel, execute};
use crate::inbox::Inbox;
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
}

impl UcmaFile for File {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let answer = self.world.change(|world| {
            let machine = world.machines.get_mut(self.machine);
            let mut kernel = Kernel {
                clock: &mut world.clock,
                subnet: &world.subnet,
                machine: machine.ok_or(Errno::ENXIO)?,
                index: self.machine,
                file: self.serial,
            };
            execute(&mut kernel, call)
        });
        answer.map_err(io::Error::from)
    }

    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
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
            if let Some(other) = other {
                if is_readable(other, PollTimeout::ZERO)? {
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
                (_, None) => match other {
                    None => world = self.world.sleep(world),
                    Some(other) => {
                        // Another thread may change the world meanwhile.
                        drop(world);
                        is_readable(other, PollTimeout::from(1_u8))?;
                        world = self.world.look();
                    }
                },
            }
        }
    }

    fn wake(&self) {
        self.change(|file| std::mem::replace(&mut file.woken, true));
    }

    fn take_wake(&self) -> bool {
        self.change(|file| std::mem::take(&mut file.woken))
    }

    fn notify(&self) {
        self.change(|file| std::mem::replace(&mut file.look, true));
    }

    fn take_notification(&self) -> bool {
        self.change(|file| std::mem::take(&mut file.look))
    }

    fn now(&self) -> Instant {
        self.world.look().clock.now()
    }

    fn next_due(&self) -> Option<Instant> {
        self.world.look().clock.next()
    }

    fn advance_to(&self, time: Instant) {
        loop {
            let reached = self.world.change(|world| {
                let next = world.clock.next().map_or(time, |next| next.min(time));
                world.clock.move_to(next);
                next == time
            });
            if reached {
                return;
            }
        }
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn is_readable(fd: BorrowedFd<'_>, timeout: PollTimeout) -> io::Result<bool> {
    match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
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
