//! Waiting for events and wake-ups at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// The wake-up of a channel, and one descriptor that is readable while the
/// kernel has an event or a wake-up is pending. Both are made when the channel
/// opens: a thread that blocked before the wake-up was made would never hear
/// it, and handing out a descriptor must not fail.
#[derive(Debug)]
pub(super) struct Readiness {
    epoll: Epoll,
    wakeup: EventFd,
    /// Why the eventfd is readable, so that asking costs no system call: it is
    /// as long as one of the two is set. They change together with it, under
    /// the lock: were they to disagree, a wake-up could be lost or a wait never
    /// sleep.
    woken: AtomicBool,
    look: AtomicBool,
    changing: Mutex<()>,
}

impl Readiness {
    pub(super) fn new(ucma: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let wakeup = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        epoll.add(ucma, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        epoll.add(&wakeup, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
        Ok(Self {
            epoll,
            wakeup,
            woken: AtomicBool::new(false),
            look: AtomicBool::new(false),
            changing: Mutex::default(),
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// `true` when it took a wake-up. The descriptors are polled one by one,
    /// because the epoll descriptor would not say which of them is ready.
    pub(super) fn wait(&self, ucma: BorrowedFd<'_>, until: Option<Instant>) -> io::Result<bool> {
        let mut fds = [
            PollFd::new(ucma, PollFlags::POLLIN),
            PollFd::new(self.wakeup.as_fd(), PollFlags::POLLIN),
        ];
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match poll(&mut fds, timeout(left)) {
            Ok(_) => Ok(fds[1].any() == Some(true) && self.take_wake()),
            // The caller looks for itself and comes back with the time left.
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn wake(&self) {
        self.raise(&self.woken);
    }

    pub(super) fn take_wake(&self) -> bool {
        self.take(&self.woken, &self.look)
    }

    /// As a wake-up, but ends no caller's wait: who waits looks for events.
    pub(super) fn look_again(&self) {
        self.raise(&self.look);
    }

    pub(super) fn take_look(&self) -> bool {
        self.take(&self.look, &self.woken)
    }

    fn raise(&self, reason: &AtomicBool) {
        let _changing = self.changing();
        // First the reason: who is woken before it is there finds none, and
        // looks again and again until this thread has its turn.
        reason.store(true, Ordering::Release);
        // The counter is full only after 2^64 - 2 of these that nobody took:
        // then the descriptor is readable, which is all this is to achieve.
        let _ = self.wakeup.write(1);
    }

    /// Takes one reason; the descriptor stays readable while the other holds.
    fn take(&self, reason: &AtomicBool, other: &AtomicBool) -> bool {
        if !reason.load(Ordering::Acquire) {
            return false;
        }
        let _changing = self.changing();
        let taken = reason.swap(false, Ordering::AcqRel);
        if taken && !other.load(Ordering::Acquire) {
            // Readable by the rule above; reading resets it.
            let _ = self.wakeup.read();
        }
        taken
    }

    /// Held over two calls that never sleep; there is nothing to be half-done.
    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rounded up to whole milliseconds, so that a wait never ends just before its
/// deadline and spins; a far deadline is waited for in several goes.
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
            let waiter = scope.spawn(|| readiness.wait(quiet.as_fd(), None));
            readiness.wake();
            assert!(waiter.join().unwrap().unwrap());
        });
        readiness.wake();
        readiness.wake();
        assert!(readiness.take_wake(), "wake-ups are taken together");
        assert!(!readiness.take_wake());
    }

    #[test]
    fn a_look_ends_a_wait_and_is_no_wake_up() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        assert!(!readiness.take_look());
        readiness.look_again();
        assert!(!readiness.wait(quiet.as_fd(), None).unwrap());
        assert!(!readiness.take_wake() && readiness.take_look());
        assert!(!readiness.take_look());
    }

    #[test]
    fn the_descriptor_is_readable_until_wake_up_and_look_are_taken() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::new(quiet.as_fd()).unwrap();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        for wake_first in [true, false] {
            readiness.wake();
            readiness.look_again();
            let takes: [fn(&Readiness) -> bool; 2] = [Readiness::take_wake, Readiness::take_look];
            let (first, second) = (usize::from(!wake_first), usize::from(wake_first));
            assert!(takes[first](&readiness) && readable());
            assert!(takes[second](&readiness) && !readable());
        }
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let (quiet, _keep_open) = pipe().unwrap();
        let (ended, end) = mpsc::channel();
        // Left behind where the wait never ends.
        std::thread::spawn(move || {
            let readiness = Readiness::new(quiet.as_fd()).unwrap();
            let until = Instant::now() + Duration::from_millis(30);
            let woken = readiness.wait(quiet.as_fd(), Some(until)).unwrap();
            ended.send((woken, Instant::now() >= until)).unwrap();
        });
        let ended = end.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Ok((false, true)));
    }

    #[test]
    fn a_pending_wake_up_is_a_readable_descriptor_whatever_the_threads_do() {
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
    fn the_descriptor_is_readable_when_the_device_is() {
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
            !readiness.wait(device.as_fd(), None).unwrap(),
            "nobody woke it"
        );
    }
}
