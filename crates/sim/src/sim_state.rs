//! The state of a simulation: the hosts, what connects them, and the clock.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::Clock;
use crate::host_state::HostState;
use crate::id::{Id, IdKey};
use crate::kernel_command::KernelCommand;
use crate::network::Network;
use crate::random::Random;
use crate::subnet::Subnet;
use crate::threads::{Quiet, Users};
use crate::waits::Waits;

/// How often a wait checks whether the clock may move, while it may not.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The state of a simulation.
#[derive(Debug)]
pub(crate) struct SimState {
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) subnet: Subnet,
    pub(crate) network: Network,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) waits: Waits,
    pub(crate) users: Users,
    /// The last communication id; no two connections of the fabric share one.
    last_communication_id: u32,
}

/// The state behind its lock.
#[derive(Debug)]
pub(crate) struct SharedState {
    state: Mutex<SimState>,
    /// The process that simulates.
    process: u32,
    /// What a forked child has instead of the state.
    in_child: OnceLock<Mutex<SimState>>,
}

impl SimState {
    /// A fabric without hosts.
    fn new() -> Self {
        Self {
            clock: Clock::new(),
            random: Random::new(0),
            subnet: Subnet::default(),
            network: Network::default(),
            hosts: Vec::new(),
            waits: Waits::new(),
            users: Users::default(),
            last_communication_id: 0,
        }
    }

    /// Fires the timers that are due.
    pub(crate) fn run_due(&mut self) {
        while let Some(timer) = self.clock.take_due() {
            timer.fire(self);
        }
    }

    /// Moves the clock to a time and fires the timers that are due on the way.
    pub(crate) fn advance_to(&mut self, time: Instant) {
        while let Some(next) = self.clock.next().filter(|next| *next <= time) {
            self.clock.move_to(next);
            self.run_due();
        }
        self.clock.move_to(time);
        self.send_unsent();
        self.waits.notify();
    }

    /// The id, unless it was destroyed.
    pub(crate) fn id(&mut self, key: IdKey) -> Option<&mut Id> {
        let id = self.hosts.get_mut(key.host)?.ids.get_mut(&key.number)?;
        (id.serial == key.serial).then_some(id)
    }

    pub(crate) fn next_communication_id(&mut self) -> u32 {
        self.last_communication_id = self.last_communication_id.wrapping_add(1);
        self.last_communication_id
    }

    /// The next time at which a timer fires or a wait ends.
    fn next_time(&self) -> Option<Instant> {
        let times = [self.clock.next(), self.waits.earliest()];
        times.into_iter().flatten().min()
    }
}

impl SharedState {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(SimState::new()),
            process: std::process::id(),
            in_child: OnceLock::new(),
        }
    }

    /// Whether this is a forked child.
    pub(crate) fn is_in_child(&self) -> bool {
        std::process::id() != self.process
    }

    /// A forked child may not give commands, as with the kernel.
    ///
    /// # Errors
    /// `EACCES`.
    pub(crate) fn check_process(&self) -> io::Result<()> {
        if self.is_in_child() {
            return Err(Errno::EACCES.into());
        }
        Ok(())
    }

    /// Locks the state. A forked child has another one, without hosts, timers and waits: those of
    /// the parent lead to its memory, rings and descriptors, and another thread of the parent may
    /// have locked them at the fork.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SimState> {
        if self.is_in_child() {
            return self.in_child.get_or_init(|| self.state_for_child()).lock();
        }
        self.state.lock()
    }

    fn state_for_child(&self) -> Mutex<SimState> {
        let mut state = SimState::new();
        // If it is locked, the child does not know the time.
        if let Some(inherited) = self.state.try_lock() {
            state.clock = inherited.clock.without_timers();
            state.waits.idle_time = inherited.waits.idle_time;
            // Unlocking it may wake a thread, which the child does not have.
            mem::forget(inherited);
        }
        Mutex::new(state)
    }

    /// Changes the state, with all that follows at once, and notifies the waiting
    /// threads.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut SimState) -> T) -> T {
        let mut state = self.lock();
        state.users.add_this();
        let outcome = change(&mut state);
        state.run_due();
        state.send_unsent();
        state.waits.notify();
        outcome
    }

    /// Waits if the command of a host is held.
    pub(crate) fn pass_hold(&self, host: usize, command: impl Into<KernelCommand>) {
        let hold = {
            let mut state = self.lock();
            let host = state.hosts.get_mut(host);
            host.and_then(|host| host.take_hold(command.into()))
        };
        if let Some(hold) = hold {
            hold.pass();
        }
    }

    /// Waits until `ready` returns a value, `other` is readable or the clock reads
    /// `until`; the last two return `None`.
    ///
    /// The clock moves as soon as all threads of the process sleep: what could happen
    /// before then would need one that runs. A thread that has computed for a while without
    /// a change counts as asleep.
    ///
    /// # Errors
    /// Those of `eventfd(2)` and `poll(2)`.
    pub(crate) fn wait_for<T>(
        &self,
        until: Option<Instant>,
        other: Option<BorrowedFd<'_>>,
        mut ready: impl FnMut(&mut SimState) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let mut registration: Option<Registration<'_>> = None;
        let mut quiet = Quiet::new();
        loop {
            let mut state = self.lock();
            state.send_unsent();
            if let Some(outcome) = ready(&mut state) {
                drop(state);
                return Ok(Some(outcome));
            }
            let is_over = until.is_some_and(|until| state.clock.now() >= until);
            if is_over || is_readable(other)? {
                drop(state);
                return Ok(None);
            }
            let wait = match &mut registration {
                Some(wait) => wait,
                none => none.insert(Registration::new(self, &mut state, until)?),
            };
            state.users.add_this();
            state.waits.check(wait.number);
            let checks = state.waits.is_newest(wait.number) && state.next_time().is_some();
            if checks && state.waits.is_settled() {
                let (changes, users) = (state.waits.changes, state.users.clone());
                quiet.update(changes);
                let idle_time = state.waits.idle_time;
                drop(state);
                // The caller's descriptor may have become readable since, by a thread that sleeps
                // again.
                let is_over = quiet.is_over(&users, idle_time) && !is_readable(other)?;
                if is_over && self.move_clock(changes) {
                    continue;
                }
            } else {
                drop(state);
            }
            wait.sleep(other, checks.then_some(IDLE_CHECK_INTERVAL))?;
        }
    }

    /// Moves the clock to the next time, unless something has happened meanwhile.
    fn move_clock(&self, changes: u64) -> bool {
        let mut state = self.lock();
        let is_quiet = state.waits.changes == changes && state.waits.is_settled();
        let next = state.next_time().filter(|_| is_quiet);
        if let Some(next) = next {
            state.advance_to(next);
        }
        next.is_some()
    }
}

impl Drop for SharedState {
    fn drop(&mut self) {
        if self.is_in_child() {
            // Another thread of the parent may have been changing it at the fork.
            mem::forget(mem::replace(self.state.get_mut(), SimState::new()));
        }
    }
}

/// A wait that other threads know of, until this is dropped.
struct Registration<'state> {
    shared: &'state SharedState,
    number: u64,
    wake: Arc<EventFd>,
}

impl<'state> Registration<'state> {
    fn new(
        shared: &'state SharedState,
        state: &mut SimState,
        until: Option<Instant>,
    ) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = Arc::new(EventFd::from_flags(flags)?);
        let number = state.waits.add(until, Arc::clone(&wake));
        Ok(Self {
            shared,
            number,
            wake,
        })
    }

    /// Sleeps until the state changes, `other` is readable or the time has passed.
    fn sleep(&self, other: Option<BorrowedFd<'_>>, time: Option<Duration>) -> io::Result<()> {
        let own = PollFd::new(self.wake.as_fd(), PollFlags::POLLIN);
        let other = other.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let mut fds: Vec<_> = std::iter::once(own).chain(other).collect();
        let timeout = time.map_or(PollTimeout::NONE, |time| {
            let milliseconds = time.as_nanos().div_ceil(1_000_000);
            PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(0) | Err(Errno::EINTR) => Ok(()),
            Ok(_) => {
                // Fails only if the counter is 0 already.
                let _ = self.wake.read();
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.shared.lock().waits.remove(self.number);
    }
}

/// Whether a descriptor is readable, has an error or was hung up.
fn is_readable(fd: Option<BorrowedFd<'_>>) -> io::Result<bool> {
    let Some(fd) = fd else {
        return Ok(false);
    };
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::ZERO) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
