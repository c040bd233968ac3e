//! A scripted kernel: its file and its RDMA device.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use std::{fmt, io};

use nix::sys::eventfd::EventFd;
use rdmacm_abi::{CreateId, CreateIdResponse, EventNumber, EventResponse};
use rdmacm_core::ucma::{Attachment, Call, UcmaFile};
use rdmacm_core::{CommandNumber, DeviceId, Error, Gid, InfinibandPort, RdmaDevice, RdmaDevices};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The outcome of one command: the bytes of its response, or an error number.
pub(crate) type Answer = Result<Vec<u8>, i32>;

/// A kernel that responds as a test scripts it, and with zeros otherwise. It numbers
/// new ids from [`FIRST_ID`]. A wait that finds nothing advances its clock.
#[derive(Debug)]
pub(crate) struct Scripted {
    descriptor: EventFd,
    held: Mutex<Held>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

/// What other threads do while a command is executed.
struct Meanwhile {
    number: CommandNumber,
    work: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
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
    notified: bool,
    waits: usize,
    other: Option<RawFd>,
    due: Option<Instant>,
    rdma: Option<RdmaDevice>,
}

/// A command that was sent to it, except `GET_EVENT`.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) number: CommandNumber,
    request: Vec<u8>,
    /// The value of an option.
    pub(crate) value: Option<Vec<u8>>,
    /// The descriptor of the file that an id leaves.
    pub(crate) old_file: Option<RawFd>,
}

impl Sent {
    /// The request, read as this type.
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
                notified: false,
                waits: 0,
                other: None,
                due: None,
                rdma: None,
            }),
            meanwhile: Mutex::new(None),
        }
    }

    /// Scripts the response to the next command of this number.
    pub(crate) fn answer(&self, number: CommandNumber, answer: &(impl IntoBytes + Immutable)) {
        self.held()
            .answers
            .push((number, Ok(answer.as_bytes().to_vec())));
    }

    /// Refuses the next command of this number.
    pub(crate) fn refuse(&self, number: CommandNumber, errno: i32) {
        self.held().answers.push((number, Err(errno)));
    }

    /// Queues an event.
    pub(crate) fn report(&self, event: &EventResponse) {
        self.held().events.push_back(Ok(*event));
    }

    /// Fails a `GET_EVENT`.
    pub(crate) fn fail_get_event(&self, errno: i32) {
        self.held().events.push_back(Err(errno));
    }

    /// Does this during the next `GET_EVENT`, after the event has left the kernel's queue.
    pub(crate) fn while_an_event_is_read(&self, meanwhile: impl FnOnce() + Send + 'static) {
        self.during(CommandNumber::GET_EVENT, meanwhile);
    }

    /// Does this during the next command of this number, which has been executed by then.
    pub(crate) fn during(&self, number: CommandNumber, work: impl FnOnce() + Send + 'static) {
        let work = Box::new(work);
        *self.meanwhile.lock().unwrap() = Some(Meanwhile { number, work });
    }

    /// An event of the id, or the group, that was created last.
    pub(crate) fn event(&self, event: EventNumber, status: i32) -> EventResponse {
        EventResponse {
            uid: self.held().uid,
            event,
            raw_status: u32::from_ne_bytes(status.to_ne_bytes()),
            ..EventResponse::new_zeroed()
        }
    }

    /// Takes the commands that were sent since the last call.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.held().sent)
    }

    /// Takes the only command that was sent since the last call, which has this number.
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

    /// The number of waits.
    pub(crate) fn waits(&self) -> usize {
        self.held().waits
    }

    /// The other descriptor that the last wait polled.
    pub(crate) fn other(&self) -> Option<RawFd> {
        self.held().other
    }

    /// Sets the time of the next work.
    pub(crate) fn set_due(&self, time: Instant) {
        self.held().due = Some(time);
    }

    /// Whether a notification is pending.
    pub(crate) fn is_notified(&self) -> bool {
        self.held().notified
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }
}

impl Held {
    /// The scripted response to a command, or the default one.
    fn answer_to(&mut self, number: CommandNumber) -> Answer {
        let scripted = self.answers.iter().position(|(of, _)| *of == number);
        match scripted {
            Some(place) => self.answers.remove(place).1,
            None if creates(number) => {
                self.ids += 1;
                let made = CreateIdResponse { id: self.ids - 1 };
                Ok(made.as_bytes().to_vec())
            }
            None => Ok(Vec::new()),
        }
    }
}

/// Whether a command creates an id or a membership.
fn creates(number: CommandNumber) -> bool {
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

impl UcmaFile for Scripted {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        let mut held = self.held();
        let number = call.number();
        let answer = if number == CommandNumber::GET_EVENT {
            let event = held.events.pop_front().unwrap_or(Err(libc::EAGAIN));
            event.map(|event| event.as_bytes().to_vec())
        } else {
            let (value, old_file) = match call.attachment() {
                Attachment::OptionValue(value) => (Some(value.to_vec()), None),
                Attachment::OldChannel(ucma) => (None, Some(ucma.readiness().as_raw_fd())),
                Attachment::None => (None, None),
            };
            held.uid = uid_of(call).unwrap_or(held.uid);
            held.sent.push(Sent {
                number,
                request: call.request().to_vec(),
                value,
                old_file,
            });
            held.answer_to(number)
        };
        drop(held);
        let mut meanwhile = self.meanwhile.lock().unwrap();
        let work = meanwhile.take_if(|meanwhile| meanwhile.number == number);
        drop(meanwhile);
        if let Some(Meanwhile { work, .. }) = work {
            work();
        }
        let answer = answer.map_err(io::Error::from_raw_os_error)?;
        call.response()[..answer.len()].copy_from_slice(&answer);
        Ok(())
    }

    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let mut held = self.held();
        held.waits += 1;
        held.other = other.map(|fd| fd.as_raw_fd());
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

    fn notify(&self) {
        self.held().notified = true;
    }

    fn take_notification(&self) -> bool {
        std::mem::take(&mut self.held().notified)
    }

    fn now(&self) -> Instant {
        self.held().now
    }

    fn next_due(&self) -> Option<Instant> {
        self.held().due
    }

    fn advance_to(&self, time: Instant) {
        let mut held = self.held();
        held.now = time.max(held.now);
        held.due = held.due.filter(|due| *due > held.now);
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl RdmaDevices for Scripted {
    fn look_up(&self, _: DeviceId) -> Option<RdmaDevice> {
        self.held().rdma.clone()
    }

    fn list(&self) -> Result<Vec<RdmaDevice>, Error> {
        Ok(self.held().rdma.clone().into_iter().collect())
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>, Error> {
        let ports = self.held().rdma.clone().into_iter();
        let port = |device: RdmaDevice| InfinibandPort::new(device.name, 2, Gid([7; 16]));
        Ok(ports.map(port).collect())
    }
}
