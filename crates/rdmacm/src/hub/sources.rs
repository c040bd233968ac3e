//! What a hub watches besides its event channel: the devices that messages go
//! through, and completion queues; without the feature `verbs` none.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use rdmacm_core::{Deadline, EventChannel, Result};

#[cfg(feature = "verbs")]
pub(crate) use devices::Sources;
#[cfg(feature = "verbs")]
pub(super) use devices::readable;

/// Nothing.
#[cfg(not(feature = "verbs"))]
#[derive(Debug)]
pub(crate) struct Sources;

#[cfg(not(feature = "verbs"))]
#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "as with the feature"
)]
impl Sources {
    pub(crate) fn new(_: &EventChannel) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn readiness<'a>(&'a self, channel: &'a EventChannel) -> BorrowedFd<'a> {
        std::os::fd::AsFd::as_fd(channel)
    }

    pub(crate) fn wait(&self, channel: &EventChannel, until: Deadline) -> Result<()> {
        channel.wait(until)
    }

    pub(crate) fn drain(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(feature = "verbs")]
mod devices {
    use std::os::fd::AsFd;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
    use std::task::Waker;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
    use rdmacm_core::{DeviceId, Error};
    use rdmacm_verbs::CompletionChannel;

    use super::super::queues::Queues;
    use super::super::{Hub, Leader};
    use super::{BorrowedFd, ControlFlow, Deadline, EventChannel, Result, io};
    use crate::messages::{Drained, OpenDevice};

    /// The event channel, the devices that are open, and the completion queues that
    /// are waited for, under one descriptor.
    #[derive(Debug)]
    pub(crate) struct Sources {
        epoll: Epoll,
        /// Each is open for as long as a connection uses it.
        devices: Mutex<Vec<Weak<OpenDevice>>>,
        queues: Queues,
    }

    impl Sources {
        pub(crate) fn new(channel: &EventChannel) -> io::Result<Self> {
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            epoll.add(channel, readable())?;
            Ok(Self {
                epoll,
                devices: Mutex::default(),
                queues: Queues::default(),
            })
        }

        pub(crate) fn readiness<'a>(&'a self, _: &'a EventChannel) -> BorrowedFd<'a> {
            self.epoll.0.as_fd()
        }

        /// As [`EventChannel::wait`], which does where there is nothing else.
        pub(crate) fn wait(&self, channel: &EventChannel, until: Deadline) -> Result<()> {
            if self.devices().is_empty() && self.queues.is_empty() {
                return channel.wait(until);
            }
            let now = channel.now();
            let until = until.until(now);
            let left = until.map(|until| until.saturating_duration_since(now));
            // Rounded up, so that the wait does not end just before and spin.
            let left = left.map_or(PollTimeout::NONE, |left| {
                let milliseconds = left.as_nanos().div_ceil(1_000_000);
                let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
                PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
            });
            let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, left) {
                Ok(0) => Err(Error::DeadlinePassed),
                // The caller comes back with the time left.
                Ok(_) | Err(Errno::EINTR) => Ok(()),
                Err(errno) => Err(Error::Wait {
                    errno: errno as i32,
                }),
            }
        }

        /// Hands out what the devices and queues tell, of each up to a turn's share.
        /// Breaks where there may be more.
        pub(crate) fn drain(&self) -> ControlFlow<()> {
            let devices: Vec<_> = self.devices().iter().filter_map(Weak::upgrade).collect();
            let mut rest = ControlFlow::Continue(());
            for device in devices {
                match device.drain() {
                    Drained::InPart => rest = ControlFlow::Break(()),
                    Drained::Wholly => {}
                    Drained::ForGood => self.forget(&device),
                }
            }
            self.queues.drain(&self.epoll);
            rest
        }

        /// Watches a device from now on, if it does not yet. Whether this is the
        /// first.
        fn watch(&self, device: &Arc<OpenDevice>) -> Result<bool, Errno> {
            let mut devices = self.devices();
            let same = |one: &Weak<OpenDevice>| std::ptr::eq(one.as_ptr(), Arc::as_ptr(device));
            if devices.iter().any(same) || device.is_gone() {
                return Ok(false);
            }
            self.epoll.add(device.as_ref(), readable())?;
            let first = devices.is_empty();
            // Those that were closed the kernel has forgotten.
            devices.retain(|one| one.strong_count() > 0);
            devices.push(Arc::downgrade(device));
            Ok(first)
        }

        /// The device, if it is open.
        fn opened(&self, id: DeviceId) -> Option<Arc<OpenDevice>> {
            let devices = self.devices();
            let mut open = devices.iter().filter_map(Weak::upgrade);
            open.find(|device| device.id() == id && !device.is_gone())
        }

        /// One that has gone would be readable for good.
        fn forget(&self, device: &Arc<OpenDevice>) {
            let mut devices = self.devices();
            devices.retain(|one| !std::ptr::eq(one.as_ptr(), Arc::as_ptr(device)));
            let _ = self.epoll.delete(device.as_ref());
        }

        fn devices(&self) -> MutexGuard<'_, Vec<Weak<OpenDevice>>> {
            self.devices.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Hub {
        /// The device, open.
        pub(crate) fn open_device(&self, id: DeviceId) -> rdmacm_verbs::Result<Arc<OpenDevice>> {
            let opened = self.sources.opened(id);
            let device = opened.map_or_else(|| OpenDevice::open(id), Ok)?;
            // So that the next to ask finds it.
            self.hear_of(&device)?;
            Ok(device)
        }

        /// Sees to it that whoever waits hears of the device.
        ///
        /// # Errors
        /// The device cannot be waited for.
        pub(crate) fn hear_of(&self, device: &Arc<OpenDevice>) -> rdmacm_verbs::Result<()> {
            let first = self.sources.watch(device);
            self.rouse_for(first)
        }

        /// Puts one among those who are woken when the queue of this channel tells of
        /// something. Whoever waits hears of it.
        ///
        /// # Errors
        /// The channel cannot be waited for.
        pub(crate) fn await_queue(
            &self,
            channel: &CompletionChannel,
            key: u64,
            waker: &Waker,
        ) -> rdmacm_verbs::Result<()> {
            let Sources { epoll, queues, .. } = &self.sources;
            let first = queues.join(epoll, channel, key, waker);
            self.rouse_for(first)
        }

        /// One who waited for a queue does so no more.
        pub(crate) fn leave_queue(&self, channel: &CompletionChannel, key: u64) {
            self.sources.queues.leave(&self.sources.epoll, channel, key);
        }

        /// With the first that is watched besides the event channel: a thread may be
        /// sleeping on that alone.
        fn rouse_for(&self, first: Result<bool, Errno>) -> rdmacm_verbs::Result<()> {
            let first = first.map_err(|errno| rdmacm_verbs::Error::Wait {
                errno: errno as i32,
            })?;
            if first && self.state().leader == Leader::Asleep {
                self.channel.waker().wake();
            }
            Ok(())
        }
    }

    pub(in crate::hub) fn readable() -> EpollEvent {
        EpollEvent::new(EpollFlags::EPOLLIN, 0)
    }
}
