//! The device.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use nix::sys::eventfd::EventFd;
use rdmacm_abi::{CreateId, CreateIdResponse, EventNumber, EventResponse};
use rdmacm_core::device::{Attachment, Call, Device};
use rdmacm_core::{CommandNumber, DeviceId, Gid, InfinibandPort, RdmaDevice};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// What a command gets, and once: the bytes of an answer, or an error number.
pub(crate) type Answer = Result<Vec<u8>, i32>;

/// It answers what it was told to, and zeros otherwise; new ids are numbered from
/// [`FIRST_ID`]. Its clock goes on when somebody waits in vain.
#[derive(Debug)]
pub(crate) struct Scripted {
    descriptor: EventFd,
    held: Mutex<Held>,
}

pub(crate) const FIRST_ID: u32 = 40;

#[derive(Debug)]
struct Held {
    now: Instant,
    ids: u32,
    uid: u64,
    sent: Vec<Sent>,
    answers: Vec<(CommandNumber, Answer)>,
    events: VecDeque<Result<EventResponse, i32>>,
    woken: bool,
    look: bool,
    waits: usize,
    rdma: Option<RdmaDevice>,
}

/// A command it was sent, but for those that look for events.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) number: CommandNumber,
    request: Vec<u8>,
    /// The value of an option.
    pub(crate) value: Option<Vec<u8>>,
    /// The device an id is to leave, by its descriptor.
    pub(crate) leaves: Option<RawFd>,
}

impl Sent {
    /// The request, which is one of this type.
    #[track_caller]
    pub(crate) fn request<R: FromBytes>(&self) -> R {
        R::read_from_bytes(&self.request).ok().unwrap()
    }
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self {
            descriptor: EventFd::new().unwrap(),
            held: Mutex::new(Held {
                now: Instant::now(),
                ids: FIRST_ID,
                uid: 0,
                sent: Vec::new(),
                answers: Vec::new(),
                events: VecDeque::new(),
                woken: false,
                look: false,
                waits: 0,
                rdma: None,
            }),
        }
    }

    /// The answer to the next command of this number that has none yet.
    pub(crate) fn answer(&self, number: CommandNumber, answer: &(impl IntoBytes + Immutable)) {
        self.held()
            .answers
            .push((number, Ok(answer.as_bytes().to_vec())));
    }

    /// The next command of this number is refused.
    pub(crate) fn refuse(&self, number: CommandNumber, errno: i32) {
        self.held().answers.push((number, Err(errno)));
    }

    /// An event to be found.
    pub(crate) fn report(&self, event: &EventResponse) {
        self.held().events.push_back(Ok(*event));
    }

    /// A look for an event fails.
    pub(crate) fn fail_a_look(&self, errno: i32) {
        self.held().events.push_back(Err(errno));
    }

    /// An event of the id, or the group, that was made last.
    pub(crate) fn event(&self, event: EventNumber, status: i32) -> EventResponse {
        EventResponse {
            uid: self.held().uid,
            event,
            raw_status: u32::from_ne_bytes(status.to_ne_bytes()),
            ..EventResponse::new_zeroed()
        }
    }

    /// What it was sent since the last question.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.held().sent)
    }

    /// The one command it was sent since the last question, and its number.
    #[track_caller]
    pub(crate) fn only<R: FromBytes>(&self, number: CommandNumber) -> R {
        let sent = self.take();
        let [one] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(one.number, number);
        one.request()
    }

    pub(crate) fn forget(&self) {
        self.take();
    }

    /// The RDMA device that every id is attached to.
    pub(crate) fn attach(&self, device: RdmaDevice) {
        self.held().rdma = Some(device);
    }

    /// How often somebody waited.
    pub(crate) fn waits(&self) -> usize {
        self.held().waits
    }

    /// Whether a look for an event is called for.
    pub(crate) fn looks(&self) -> bool {
        self.held().look
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }
}

impl Held {
    /// The answer that is written down for a command, or what it gets without one.
    fn answer_to(&mut self, number: CommandNumber) -> Answer {
        let written = self.answers.iter().position(|(of, _)| *of == number);
        match written {
            Some(place) => self.answers.remove(place).1,
            None if makes(number) => {
                self.ids += 1;
                let made = CreateIdResponse { id: self.ids - 1 };
                Ok(made.as_bytes().to_vec())
            }
            None => Ok(Vec::new()),
        }
    }
}

/// Whether a command makes an id or a membership.
fn makes(number: CommandNumber) -> bool {
    [
        CommandNumber::CREATE_ID,
        CommandNumber::JOIN_MCAST,
        CommandNumber::JOIN_IP_MCAST,
    ]
    .contains(&number)
}

fn uid_of(call: &Call<'_>) -> Option<u64> {
    let at = match call.number() {
        CommandNumber::CREATE_ID => std::mem::offset_of!(CreateId, uid),
        CommandNumber::JOIN_MCAST | CommandNumber::JOIN_IP_MCAST => size_of::<u64>(),
        _ => return None,
    };
    let (uid, _) = u64::read_from_prefix(&call.request()[at..]).unwrap();
    Some(uid)
}

impl Device for Scripted {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let mut held = self.held();
        let number = call.number();
        let answer = if number == CommandNumber::GET_EVENT {
            let event = held.events.pop_front().unwrap_or(Err(libc::EAGAIN));
            event.map(|event| event.as_bytes().to_vec())
        } else {
            let (value, leaves) = match call.attachment() {
                Attachment::OptionValue(value) => (Some(value.to_vec()), None),
                Attachment::OldChannel(device) => (None, Some(device.readiness().as_raw_fd())),
                Attachment::None => (None, None),
            };
            held.uid = uid_of(call).unwrap_or(held.uid);
            held.sent.push(Sent {
                number,
                request: call.request().to_vec(),
                value,
                leaves,
            });
            held.answer_to(number)
        };
        let answer = answer.map_err(io::Error::from_raw_os_error)?;
        call.response()[..answer.len()].copy_from_slice(&answer);
        Ok(())
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        let mut held = self.held();
        held.waits += 1;
        if held.events.is_empty() && !held.woken {
            let Some(until) = until else {
                return Err(io::Error::from_raw_os_error(libc::EDEADLK));
            };
            held.now = until.max(held.now);
        }
        Ok(std::mem::take(&mut held.woken))
    }

    fn wake(&self) {
        self.held().woken = true;
    }

    fn take_wake(&self) -> bool {
        std::mem::take(&mut self.held().woken)
    }

    fn look_again(&self) {
        self.held().look = true;
    }

    fn take_look(&self) -> bool {
        std::mem::take(&mut self.held().look)
    }

    fn now(&self) -> Instant {
        self.held().now
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn look_up(&self, _: DeviceId) -> Option<RdmaDevice> {
        self.held().rdma.clone()
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>, rdmacm_core::Error> {
        let ports = self.held().rdma.clone().into_iter();
        let port = |device: RdmaDevice| InfinibandPort::new(device.name, 2, Gid([7; 16]));
        Ok(ports.map(port).collect())
    }
}
