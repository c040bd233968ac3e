//! Waiting for events, wake-ups and notifications at the same time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// The wake-up and notification flags of a file, with one descriptor that is
/// readable while the kernel has an event or a flag is set. All descriptors are
/// opened with the file: a thread that blocked before the eventfd existed would
/// miss a wake-up, and [`fd`](Self::fd) cannot fail.
#[derive(Debug)]
pub(super) struct Readiness {
    epoll: Epoll,
    eventfd: EventFd,
    /// The eventfd is readable while one of these flags is set, so reading a flag
    /// needs no system call. Flags and eventfd change together under the lock:
    /// if they disagreed, a wake-up could be lost or a wait never block.
    woken: AtomicBool,
    notified: AtomicBool,
    changing: Mutex<()>,
}

impl Readiness {
    pub(super) fn new(ucma: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        epoll.add(ucma, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        epoll.add(&eventfd, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
        Ok(Self {
            epoll,
            eventfd,
            woken: AtomicBool::new(false),
            notified: AtomicBool::new(false),
            changing: Mutex::default(),
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Returns `true` if it took a wake-up. Polls the descriptors one by one,
    /// because the epoll descriptor does not say which of them is ready.
    pub(super) fn wait(
        &self,
        ucma: BorrowedFd<'_>,
        other: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> io::Result<bool> {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let eventfd = self.eventfd.as_fd();
        let mut fds = [eventfd, ucma, other.unwrap_or(ucma)].map(readable);
        let polled = if other.is_some() {
            &mut fds[..]
        } else {
            &mut fds[..2]
        };
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match poll(polled, timeout(left)) {
            Ok(_) => Ok(fds[0].any() == Some(true) && self.take_wake()),
            // The caller checks its deadline and waits again.
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn wake(&self) {
        self.set(&self.woken);
    }

    pub(super) fn take_wake(&self) -> bool {
        self.take(&self.woken, &self.notified)
    }

    /// Ends a wait like a wake-up, but only to check for events.
    pub(super) fn notify(&self) {
        self.set(&self.notified);
    }

    pub(super) fn take_notification(&self) -> bool {
        self.take(&self.notified, &self.woken)
    }

    fn set(&self, flag: &AtomicBool) {
        let _changing = self.changing();
        // The flag first: a thread that the eventfd wakes before the flag is set
        // would find none and spin until this thread runs again.
        flag.store(true, Ordering::Release);
        // Fails only if the counter is full, after 2^64 - 2 writes without a
        // read: then the descriptor is readable already.
        let _ = self.eventfd.write(1);
    }

    /// Clears one flag; the descriptor stays readable while the other is set.
    fn take(&self, flag: &AtomicBool, other: &AtomicBool) -> bool {
        if !flag.load(Ordering::Acquire) {
            return false;
        }
        let _changing = self.changing();
        let taken = flag.swap(false, Ordering::AcqRel);
        if taken && !other.load(Ordering::Acquire) {
            // Readable, because a flag was set; reading resets it.
            let _ = self.eventfd.read();
        }
        taken
    }

    /// Held for two calls that never block and leave no partial state.
    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rounds up to whole milliseconds, so that a wait never ends just before its
/// deadline and spins. A longer time than `poll(2)` takes is cut off; the caller
/// then waits again.
fn timeout(left: Option<Duration>) -> PollTimeout {
    let Some(left) = left else {
        return PollTimeout::NONE;
    };
    let milliseconds = left.as_nanos().div_ceil(1_000_000);
    i32::try_from(milliseconds)
        .ok()
        .and_then(|milliseconds| PollTimeout::try_from(milliseconds).ok())
        .unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pipe;
    use std::sync::mpsc;

    #[test]
    fn waits_are_rounded_up_and_bounded() {
        assert_eq!(timeout(None), PollTimeout::NONE);
        assert_eq!(timeout(Some(Duration::ZERO)), PollTimeout::ZERO);
        let soon = Duration::from_micros(2500);
        assert_eq!(timeout(Some(soon)), PollTimeout::from(3_u8));
        let whole = Duration::from_millis(7);
        assert_eq!(timeout(Some(whole)), PollTimeout::from(7_u8));
        assert_eq!(timeout(Some(Duration::MAX)), PollTimeout::MAX);
    }

    #[test]
    fn a_wake_up_ends_a_wait_and_is_taken_once() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        assert!(!readiness.take_wake());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| readiness.wait(quiet.as_fd(), None, None));
            readiness.wake();
            assert!(waiter.join().unwrap().unwrap());
        });
        readiness.wake();
        readiness.wake();
        assert!(readiness.take_wake(), "wake-ups are taken together");
        assert!(!readiness.take_wake());
    }

    #[test]
    fn a_notification_ends_a_wait_and_is_not_a_wake_up() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        assert!(!readiness.take_notification());
        readiness.notify();
        assert!(!readiness.wait(quiet.as_fd(), None, None).unwrap());
        assert!(!readiness.take_wake() && readiness.take_notification());
        assert!(!readiness.take_notification());
    }

    #[test]
    fn another_readable_descriptor_ends_a_wait() {
        let (quiet, _keep_open) = pipe().unwrap();
        let (other, writer) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        let wait = |until| readiness.wait(quiet.as_fd(), Some(other.as_fd()), until);
        let until = Instant::now() + Duration::from_millis(1);
        assert!(!wait(Some(until)).unwrap());
        assert!(
            Instant::now() >= until,
            "the other descriptor is not readable"
        );
        nix::unistd::write(&writer, b"x").unwrap();
        assert!(!wait(None).unwrap());
        readiness.wake();
        assert!(wait(None).unwrap(), "a wake-up is taken all the same");
    }

    #[test]
    fn the_descriptor_is_readable_until_both_flags_are_taken() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        for wake_first in [true, false] {
            readiness.wake();
            readiness.notify();
            let takes: [fn(&Readiness) -> bool; 2] =
                [Readiness::take_wake, Readiness::take_notification];
            let (first, second) = (usize::from(!wake_first), usize::from(wake_first));
            assert!(takes[first](&readiness) && readable());
            assert!(takes[second](&readiness) && !readable());
        }
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_earlier() {
        let (quiet, _keep_open) = pipe().unwrap();
        let (ended, end) = mpsc::channel();
        // The thread is leaked if the wait never ends.
        std::thread::spawn(move || {
            let readiness = Readiness::new(quiet.as_fd()).unwrap();
            let until = Instant::now() + Duration::from_millis(30);
            let woken = readiness.wait(quiet.as_fd(), None, Some(until)).unwrap();
            ended.send((woken, Instant::now() >= until)).unwrap();
        });
        let ended = end.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Ok((false, true)));
    }

    #[test]
    fn concurrent_threads_keep_flag_and_descriptor_consistent() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| readiness.wake());
                    scope.spawn(|| readiness.take_wake());
                }
            });
            let mut fds = [PollFd::new(readiness.fd(), PollFlags::POLLIN)];
            let readable = poll(&mut fds, PollTimeout::ZERO).unwrap() == 1;
            assert_eq!(readiness.take_wake(), readable);
        }
    }

    #[test]
    fn the_descriptor_is_readable_when_the_ucma_file_is() {
        let (device, kernel) = pipe().unwrap();
        let readiness = Readiness::new(device.as_fd()).unwrap();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        assert!(!readable());
        nix::unistd::write(&kernel, b"event").unwrap();
        assert!(readable());
        assert!(
            !readiness.wait(device.as_fd(), None, None).unwrap(),
            "no wake-up was pending"
        );
    }
}
