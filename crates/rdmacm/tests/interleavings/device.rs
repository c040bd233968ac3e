//! A stand-in for the kernel on the scheduler's threads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;
use std::time::Instant;

use nix::sys::eventfd::{EfdFlags, EventFd};
use rdmacm::core::CommandNumber;
use rdmacm::core::ucma::{Call, UcmaFile};
use rdmacm_abi::{CreateIdResponse, EventNumber, EventResponse};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, Thread};
use zerocopy::FromBytes as _;

/// A stand-in for the kernel, from which the events that a test posts are read. Its clock
/// moves to the end of a wait at some time while the wait goes on.
///
/// The scheduler switches threads only where a thread sleeps or wakes another one, never
/// under the lock.
#[derive(Debug)]
pub(crate) struct Device {
    state: Mutex<State>,
    /// Readable while the state says so.
    readiness: EventFd,
}

#[derive(Debug)]
struct State {
    now: Instant,
    /// The numbers by which the program knows its ids, in the order of their creation.
    ids: Vec<u64>,
    /// The ids of unread events.
    events: VecDeque<usize>,
    is_woken: bool,
    is_notified: bool,
    /// The error number that the next read fails with.
    failure: Option<i32>,
    /// All further ones fail with it too.
    fails_for_ever: bool,
    sleepers: Vec<Thread>,
    /// The reactor's, for a device that becomes readable.
    waker: Option<Waker>,
}

impl Device {
    pub(crate) fn new() -> Self {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Self {
            state: Mutex::new(State {
                now: Instant::now(),
                ids: Vec::new(),
                events: VecDeque::new(),
                is_woken: false,
                is_notified: false,
                failure: None,
                fails_for_ever: false,
                sleepers: Vec::new(),
                waker: None,
            }),
            readiness: EventFd::from_flags(flags).unwrap(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// An event of this id, in the order of their creation.
    pub(crate) fn post(&self, id: usize) {
        self.change(|state| state.events.push_back(id));
    }

    /// The next read fails with this error number.
    pub(crate) fn fail(&self, errno: i32) {
        self.change(|state| state.failure = Some(errno));
    }

    /// Whether a waiter was woken that has not noticed.
    pub(crate) fn is_woken(&self) -> bool {
        self.state().is_woken
    }

    /// From now on, all reads fail with this error number.
    pub(crate) fn fail_for_ever(&self, errno: i32) {
        self.change(|state| {
            state.failure = Some(errno);
            state.fails_for_ever = true;
        });
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.state().is_readable()
    }

    /// Wakes this waker when it becomes readable.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let replaced = self.state().waker.replace(waker.clone());
        drop(replaced);
    }

    /// Changes the state, and the readiness descriptor with it.
    fn update<T>(&self, state: &mut State, change: impl FnOnce(&mut State) -> T) -> T {
        let was_readable = state.is_readable();
        let outcome = change(state);
        match (was_readable, state.is_readable()) {
            (false, true) => drop(self.readiness.write(1).unwrap()),
            (true, false) => drop(self.readiness.read().unwrap()),
            _ => {}
        }
        outcome
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        self.update(&mut state, change);
        let (sleepers, waker) = (std::mem::take(&mut state.sleepers), state.waker.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        for sleeper in sleepers {
            sleeper.unpark();
        }
    }

    fn read(&self, response: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        let id = self.update(&mut state, |state| match state.take_failure() {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(state.events.pop_front()),
        });
        let id = id?.ok_or(io::ErrorKind::WouldBlock)?;
        let (event, _) = EventResponse::mut_from_prefix(response).unwrap();
        event.uid = state.ids[id];
        event.id = u32::try_from(id).unwrap();
        event.event = EventNumber::ADDR_CHANGE;
        Ok(())
    }

    fn create(&self, call: &mut Call<'_>) {
        let mut state = self.state();
        let (uid, _) = u64::read_from_prefix(call.request()).unwrap();
        let (answer, _) = CreateIdResponse::mut_from_prefix(call.response()).unwrap();
        answer.id = u32::try_from(state.ids.len()).unwrap();
        state.ids.push(uid);
    }

    /// Moves the clock, or lets other threads run.
    pub(crate) fn pass_time(&self, until: Instant) {
        if thread_rng().gen_bool(0.2) {
            let mut state = self.state();
            state.now = state.now.max(until);
        } else {
            thread::yield_now();
        }
    }
}

impl State {
    fn take_failure(&mut self) -> Option<i32> {
        if self.fails_for_ever {
            self.failure
        } else {
            self.failure.take()
        }
    }

    fn is_readable(&self) -> bool {
        !self.events.is_empty() || self.is_woken || self.is_notified || self.failure.is_some()
    }
}

impl UcmaFile for Device {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match call.number() {
            CommandNumber::GET_EVENT => self.read(call.response()),
            CommandNumber::CREATE_ID => {
                self.create(call);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wait(&self, until: Option<Instant>, _: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        loop {
            let mut state = self.state();
            if self.update(&mut state, |state| std::mem::take(&mut state.is_woken)) {
                return Ok(true);
            }
            if state.is_readable() || until.is_some_and(|until| until <= state.now) {
                return Ok(false);
            }
            if let Some(until) = until {
                drop(state);
                self.pass_time(until);
            } else {
                state.sleepers.push(thread::current());
                drop(state);
                thread::park();
            }
        }
    }

    fn wake(&self) {
        self.change(|state| state.is_woken = true);
    }

    fn take_wake(&self) -> bool {
        self.update(&mut self.state(), |state| {
            std::mem::take(&mut state.is_woken)
        })
    }

    fn notify(&self) {
        self.change(|state| state.is_notified = true);
    }

    fn take_notification(&self) -> bool {
        self.update(&mut self.state(), |state| {
            std::mem::take(&mut state.is_notified)
        })
    }

    fn now(&self) -> Instant {
        self.state().now
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
