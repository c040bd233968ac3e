//! Waiting for events, wake-ups and notifications at the same time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::{Mutex, MutexGuard};

/// The wake-up and notification flags of a file, with one descriptor that is
/// readable while the kernel has an event or a flag is set.
///
/// The descriptors are opened when they are first needed: the eventfd by whoever is
/// about to block, the epoll descriptor by who asks for it. So a wake-up never has to
/// open one, and [`wake`](Self::wake) cannot fail.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    epoll: OnceLock<Epoll>,
    /// Readable, once it is open, while one of the flags is set, so reading a flag
    /// needs no system call. Flags and eventfd change together under the lock, and
    /// it is opened under the lock with the flags of then: if they disagreed, a
    /// wake-up could be lost or a wait never block.
    eventfd: OnceLock<Opened>,
    woken: AtomicBool,
    notified: AtomicBool,
    changing: Mutex<()>,
    /// Why the last caller of [`fd`](Self::fd) got another descriptor; 0 if it did not.
    failure: AtomicI32,
    /// How many reads in turn have found no event, about.
    empty_reads: AtomicU8,
}

/// Why the descriptor to wait on could not be opened, within the error of a read of an event:
/// the kernel has not refused the read.
#[derive(Debug, thiserror::Error)]
#[error("the descriptor to wait on: {0}")]
pub(crate) struct Unopened(pub(crate) io::Error);

/// The eventfd.
#[derive(Debug)]
struct Opened {
    eventfd: EventFd,
    /// The process that opened it. A forked child shares it, but has flags of its own.
    opener: u32,
}

/// After how many reads in turn without an event the eventfd may be readable without a flag.
/// A caller that reads while there are events finds none only now and then. One that is woken
/// although no flag is set finds none every time.
const EMPTY_READS: u8 = 16;

/// Waits until the kernel has an event, whatever flags are set.
pub(super) fn wait_for_kernel(ucma: BorrowedFd<'_>, left: Option<Duration>) -> io::Result<()> {
    let mut fds = [PollFd::new(ucma, PollFlags::POLLIN)];
    match poll(&mut fds, timeout(left)) {
        // The caller checks its deadline and waits again.
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Readiness {
    /// Opens the descriptor of [`fd`](Self::fd), unless it is open.
    pub(super) fn open(&self, ucma: BorrowedFd<'_>) -> io::Result<()> {
        self.epoll(ucma).map(drop)
    }

    /// The descriptor that is readable while an event is pending or a flag is set. If it
    /// cannot be opened, the descriptor of `ucma`, which flags do not make readable;
    /// [`take_failure`](Self::take_failure) then has the error.
    pub(super) fn fd<'fd>(&'fd self, ucma: BorrowedFd<'fd>) -> BorrowedFd<'fd> {
        match self.epoll(ucma) {
            Ok(epoll) => epoll.0.as_fd(),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                self.failure.store(errno, Ordering::Relaxed);
                ucma
            }
        }
    }

    /// The error of the last call of [`fd`](Self::fd), once; [`Unopened`] is within.
    #[inline]
    pub(super) fn take_failure(&self) -> io::Result<()> {
        if self.failure.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        Err(self.take_known_failure())
    }

    /// `Interrupted` if another thread was faster: whoever reads events tries again.
    #[cold]
    fn take_known_failure(&self) -> io::Error {
        match self.failure.swap(0, Ordering::Relaxed) {
            0 => io::ErrorKind::Interrupted.into(),
            errno => io::Error::other(Unopened(io::Error::from_raw_os_error(errno))),
        }
    }

    fn epoll(&self, ucma: BorrowedFd<'_>) -> io::Result<&Epoll> {
        if let Some(epoll) = self.epoll.get() {
            return Ok(epoll);
        }
        let eventfd = self.eventfd()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(ucma, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        epoll.add(eventfd, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
        // Another thread may have been faster; then this one is closed.
        Ok(self.epoll.get_or_init(|| epoll))
    }

    #[inline]
    fn eventfd(&self) -> io::Result<&EventFd> {
        match self.eventfd.get() {
            Some(opened) => Ok(&opened.eventfd),
            None => self.open_eventfd(),
        }
    }

    #[cold]
    fn open_eventfd(&self) -> io::Result<&EventFd> {
        let _changing = self.changing();
        let is_set = self.woken.load(Ordering::Acquire) || self.notified.load(Ordering::Acquire);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let eventfd = EventFd::from_value_and_flags(is_set.into(), flags)?;
        let opener = std::process::id();
        // If another thread was faster, its eventfd agrees with the flags as well.
        let first = self.eventfd.get_or_init(|| Opened { eventfd, opener });
        Ok(&first.eventfd)
    }

    /// Returns `true` if it took a wake-up. Polls the descriptors one by one,
    /// because the epoll descriptor does not say which of them is ready.
    pub(super) fn wait(
        &self,
        ucma: BorrowedFd<'_>,
        other: Option<BorrowedFd<'_>>,
        left: Option<Duration>,
    ) -> io::Result<bool> {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let eventfd = readable(self.eventfd()?.as_fd());
        match other {
            None => self.wait_for([eventfd, readable(ucma)], left),
            Some(other) => self.wait_for([eventfd, readable(ucma), readable(other)], left),
        }
    }

    /// The first is the eventfd.
    fn wait_for<const N: usize>(
        &self,
        mut fds: [PollFd<'_>; N],
        left: Option<Duration>,
    ) -> io::Result<bool> {
        match poll(&mut fds, timeout(left)) {
            Ok(_) => {
                let is_set = fds
                    .first()
                    .is_some_and(|eventfd| eventfd.any() == Some(true));
                Ok(is_set && self.take_wake_or_clear())
            }
            // The caller checks its deadline and waits again.
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes a wake-up from the eventfd, which is readable.
    fn take_wake_or_clear(&self) -> bool {
        if self.take_wake() {
            return true;
        }
        if !self.has_flag() {
            self.clear_stray();
        }
        false
    }

    /// A read has found an event.
    #[inline]
    pub(super) fn found_event(&self) {
        if self.empty_reads.load(Ordering::Relaxed) != 0 {
            self.empty_reads.store(0, Ordering::Relaxed);
        }
    }

    /// A read has found no event. Whoever waits on the descriptor of [`fd`](Self::fd) may have
    /// been told that there was one.
    #[cold]
    pub(super) fn found_no_event(&self) {
        if self.epoll.get().is_none() {
            return;
        }
        let reads = self.empty_reads.load(Ordering::Relaxed).wrapping_add(1);
        self.empty_reads
            .store(reads % EMPTY_READS, Ordering::Relaxed);
        if reads == EMPTY_READS {
            self.clear_stray();
        }
    }

    /// Resets the eventfd if no flag is set: a forked child that has set a flag of its own has
    /// made it readable, and takes its own flag only.
    #[cold]
    fn clear_stray(&self) {
        let _changing = self.changing();
        if !self.has_flag() {
            self.reset();
        }
    }

    /// Whether a flag is set.
    pub(super) fn has_flag(&self) -> bool {
        self.woken.load(Ordering::Acquire) || self.notified.load(Ordering::Acquire)
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
        let _ = self.eventfd.get().map(|opened| opened.eventfd.write(1));
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
            self.reset();
        }
        taken
    }

    /// Reads the eventfd away, in the process that opened it: a forked child does not know the
    /// flags of its parent.
    fn reset(&self) {
        let opened = self.eventfd.get();
        if let Some(opened) = opened.filter(|opened| opened.opener == std::process::id()) {
            let _ = opened.eventfd.read();
        }
    }

    /// Held for two calls that never block and leave no partial state.
    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }
}

/// Rounds up to whole milliseconds, so that a wait never ends just before its
/// deadline and spins. A longer time than `poll(2)` takes is cut off; the caller
/// then waits again.
fn timeout(left: Option<Duration>) -> PollTimeout {
    let Some(left) = left else {
        return PollTimeout::NONE;
    };
    let rest = u64::from(left.subsec_nanos().div_ceil(1_000_000));
    let milliseconds = left.as_secs().saturating_mul(1000).saturating_add(rest);
    PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
impl Readiness {
    pub(super) fn is_closed(&self) -> bool {
        self.eventfd.get().is_none() && self.epoll.get().is_none()
    }

    /// What a forked child does when it wakes, or notifies: it shares the eventfd, not the flags.
    pub(super) fn wake_in_a_child(&self) {
        self.eventfd().unwrap().write(1).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pipe;
    use std::os::fd::AsRawFd;
    use std::sync::mpsc;
    use std::time::Instant;

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
        let readiness = Readiness::default();
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
        let readiness = Readiness::default();
        assert!(!readiness.take_notification());
        readiness.notify();
        assert!(!readiness.wait(quiet.as_fd(), None, None).unwrap());
        assert!(!readiness.take_wake() && readiness.take_notification());
        assert!(!readiness.take_notification());
    }

    #[test]
    fn what_a_child_sets_ends_one_wait_at_most() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::default();
        let wait = |left| readiness.wait(quiet.as_fd(), None, left).unwrap();
        readiness.wake_in_a_child();
        assert!(!wait(None));
        let left = Duration::from_millis(1);
        let until = Instant::now() + left;
        assert!(!wait(Some(left)));
        assert!(Instant::now() >= until, "nothing is left");
        for flag in [Readiness::wake, Readiness::notify] {
            readiness.wake_in_a_child();
            flag(&readiness);
            let is_woken = wait(None);
            assert_ne!(is_woken, readiness.take_notification());
            assert!(!wait(Some(Duration::ZERO)) && !readiness.has_flag());
        }
    }

    #[test]
    fn what_a_child_sets_does_not_keep_the_descriptor_readable() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::default();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(quiet.as_fd()), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        assert!(!readable());
        let spin = || (0..EMPTY_READS).for_each(|_| readiness.found_no_event());
        readiness.wake_in_a_child();
        readiness.found_no_event();
        assert!(readable());
        // As long as there are events, that costs nothing.
        for _ in 0..2 * EMPTY_READS {
            readiness.found_event();
            readiness.found_no_event();
        }
        assert!(readable());
        spin();
        assert!(!readable());
        readiness.wake_in_a_child();
        readiness.notify();
        spin();
        assert!(readable(), "there is a notification");
        assert!(readiness.take_notification() && !readable());
    }

    /// The other way round, a child reads nothing away that is its parent's.
    #[test]
    fn only_the_process_that_opened_the_descriptor_reads_it_away() {
        let readiness = Readiness::default();
        let eventfd = EventFd::from_value(1).unwrap();
        let opener = std::process::id() + 1;
        readiness.eventfd.set(Opened { eventfd, opener }).unwrap();
        readiness.clear_stray();
        let is_readable = || {
            let eventfd = readiness.eventfd().unwrap();
            let mut fds = [PollFd::new(eventfd.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO) == Ok(1)
        };
        assert!(is_readable());
        readiness.wake();
        assert!(readiness.take_wake() && is_readable());
    }

    #[test]
    fn another_readable_descriptor_ends_a_wait() {
        let (quiet, _keep_open) = pipe().unwrap();
        let (other, writer) = pipe().unwrap();
        let readiness = Readiness::default();
        let wait = |left| readiness.wait(quiet.as_fd(), Some(other.as_fd()), left);
        let left = Duration::from_millis(1);
        let until = Instant::now() + left;
        assert!(!wait(Some(left)).unwrap());
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
        let readiness = Readiness::default();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(quiet.as_fd()), PollFlags::POLLIN)];
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
            let readiness = Readiness::default();
            let left = Duration::from_millis(30);
            let until = Instant::now() + left;
            let woken = readiness.wait(quiet.as_fd(), None, Some(left)).unwrap();
            ended.send((woken, Instant::now() >= until)).unwrap();
        });
        let ended = end.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Ok((false, true)));
    }

    #[test]
    fn concurrent_threads_keep_flag_and_descriptor_consistent() {
        let (quiet, _keep_open) = pipe().unwrap();
        let readiness = Readiness::default();
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| readiness.wake());
                    scope.spawn(|| readiness.take_wake());
                }
            });
            let mut fds = [PollFd::new(readiness.fd(quiet.as_fd()), PollFlags::POLLIN)];
            let readable = poll(&mut fds, PollTimeout::ZERO).unwrap() == 1;
            assert_eq!(readiness.take_wake(), readable);
        }
    }

    #[test]
    fn a_wake_up_during_the_first_wait_or_before_it_ends_it() {
        let (quiet, _keep_open) = pipe().unwrap();
        for _ in 0..200 {
            let readiness = Readiness::default();
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| readiness.wait(quiet.as_fd(), None, None));
                scope.spawn(|| readiness.fd(quiet.as_fd()));
                scope.spawn(|| readiness.wake());
                assert!(waiter.join().unwrap().unwrap());
            });
            assert!(!readiness.take_wake());
            let mut fds = [PollFd::new(readiness.fd(quiet.as_fd()), PollFlags::POLLIN)];
            assert_eq!(poll(&mut fds, PollTimeout::ZERO), Ok(0));
        }
    }

    #[test]
    fn no_descriptor_is_opened_before_it_is_needed() {
        let readiness = Readiness::default();
        readiness.wake();
        readiness.notify();
        assert!(readiness.take_wake() && readiness.take_notification());
        assert!(readiness.is_closed());
    }

    #[test]
    fn a_descriptor_that_cannot_be_opened_is_an_error_later() {
        // epoll takes no plain files.
        let file = tempfile::tempfile().unwrap();
        let readiness = Readiness::default();
        let refused = readiness.open(file.as_fd()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert!(readiness.take_failure().is_ok());
        let fd = readiness.fd(file.as_fd());
        assert_eq!(fd.as_raw_fd(), file.as_raw_fd());
        let refused = readiness.take_failure().unwrap_err();
        let Unopened(refused) = refused.get_ref().unwrap().downcast_ref().unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert!(readiness.take_failure().is_ok());
    }

    #[test]
    fn the_descriptor_is_readable_when_the_ucma_file_is() {
        let (device, kernel) = pipe().unwrap();
        let readiness = Readiness::default();
        let readable = || {
            let mut fds = [PollFd::new(readiness.fd(device.as_fd()), PollFlags::POLLIN)];
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
