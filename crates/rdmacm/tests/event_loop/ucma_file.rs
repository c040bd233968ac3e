//! A file of the connection manager from which there are always more connect requests to read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rdmacm::core::CommandNumber;
use rdmacm::core::ucma::{Call, UcmaFile};
use rdmacm_abi::{CreateIdResponse, EventNumber, EventResponse};
use zerocopy::FromBytes as _;

/// How long reading a request takes.
pub(crate) const READING: Duration = Duration::from_micros(20);

/// A stand-in for the kernel that accepts every command, and from which there are many connect
/// requests to read, for the first of its ids. Its descriptor becomes readable once and stays
/// so until the last has been read.
///
/// Its clock moves with every request that is read, so that what is measured does not depend on
/// how busy the machine is; only while there is nothing to read it is the system's.
#[derive(Debug)]
pub(crate) struct Flooding {
    state: Mutex<State>,
    readable: EventFd,
}

#[derive(Debug)]
struct State {
    now: Instant,
    requests_left: usize,
    uid: Option<u64>,
    ids: u32,
    is_woken: bool,
    is_notified: bool,
    /// What the next read of an event, or the next wait, fails with.
    failing: Option<(Failing, i32)>,
}

/// What fails, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Wait,
    Read,
}

impl Flooding {
    pub(crate) fn new() -> Self {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Self {
            state: Mutex::new(State {
                now: Instant::now(),
                requests_left: 0,
                uid: None,
                ids: 0,
                is_woken: false,
                is_notified: false,
                failing: None,
            }),
            readable: EventFd::from_flags(flags).unwrap(),
        }
    }

    /// From now on there are requests to read, for so long by this device's clock.
    pub(crate) fn flood(&self, length: Duration) {
        let requests = length.as_nanos() / READING.as_nanos();
        self.change(|state| state.requests_left = usize::try_from(requests).unwrap());
    }

    pub(crate) fn fail(&self, what: Failing, errno: i32) {
        self.change(|state| state.failing = Some((what, errno)));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let before = state.is_readable();
        let outcome = change(&mut state);
        match (before, state.is_readable()) {
            (false, true) => drop(self.readable.write(1).unwrap()),
            (true, false) => drop(self.readable.read().unwrap()),
            _ => {}
        }
        outcome
    }

    fn read(&self, response: &mut [u8]) -> io::Result<()> {
        let began = Instant::now();
        while began.elapsed() < READING {
            std::hint::spin_loop();
        }
        self.change(|state| {
            state.failure(Failing::Read)?;
            let uid = state.uid.filter(|_| state.requests_left > 0);
            let uid = uid.ok_or(io::ErrorKind::WouldBlock)?;
            state.requests_left -= 1;
            state.now += READING;
            state.ids += 1;
            let (event, _) = EventResponse::mut_from_prefix(response).unwrap();
            event.uid = uid;
            event.id = state.ids;
            event.event = EventNumber::CONNECT_REQUEST;
            Ok(())
        })
    }

    fn create(&self, call: &mut Call<'_>) {
        self.change(|state| {
            let (uid, _) = u64::read_from_prefix(call.request()).unwrap();
            state.uid.get_or_insert(uid);
            state.ids += 1;
            let (answer, _) = CreateIdResponse::mut_from_prefix(call.response()).unwrap();
            answer.id = state.ids;
        });
    }
}

impl State {
    fn is_readable(&self) -> bool {
        self.requests_left > 0 || self.is_woken || self.is_notified || self.failing.is_some()
    }

    fn failure(&mut self, of: Failing) -> io::Result<()> {
        match self.failing.take_if(|(what, _)| *what == of) {
            Some((_, errno)) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        }
    }
}

impl UcmaFile for Flooding {
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

    fn wait(&self, until: Option<Instant>, _other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        self.change(|state| state.failure(Failing::Wait))?;
        if self.take_wake() {
            return Ok(true);
        }
        let left = until.map(|until| until.saturating_duration_since(self.now()));
        let left = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap()
        });
        let mut fds = [PollFd::new(self.readable.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, left)?;
        Ok(self.take_wake())
    }

    fn wake(&self) {
        self.change(|state| state.is_woken = true);
    }

    fn take_wake(&self) -> bool {
        self.change(|state| std::mem::take(&mut state.is_woken))
    }

    fn notify(&self) {
        self.change(|state| state.is_notified = true);
        // Also for those that wait for a change of the descriptor.
        self.readable.write(1).unwrap();
    }

    fn take_notification(&self) -> bool {
        self.change(|state| std::mem::take(&mut state.is_notified))
    }

    fn now(&self) -> Instant {
        let mut state = self.state();
        if state.requests_left == 0 {
            state.now = state.now.max(Instant::now());
        }
        state.now
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
