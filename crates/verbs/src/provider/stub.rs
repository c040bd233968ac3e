//! A device for tests: it records requests and reports the completions that a test sets.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::uverbs::{
    CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateQpResponse, CreateSrq,
    CreateSrqResponse, DriverId, GetContextResponse, RegMr, RegMrResponse, Sge as AbiSge, WcOpcode,
    WcStatus, WorkCompletion,
};
use rdmacm_core::{QpAttr, QpType, Transport};
use zerocopy::FromZeros;

use super::{
    CompletionRing, CompletionRings, NewQueuePair, Provider, ReceiveRing, ReceiveRings, SendRing,
    SendRings, SendSlot, SlotPayload, Uverbs,
};
use crate::completion_channel::CompletionChannel;
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::Result;
use crate::opcodes::Opcodes;
use crate::operation::Operation;
use crate::queue_pair::{QpCaps, QueuePair};

/// The number of its first queue pair.
pub(crate) const FIRST_NUMBER: u32 = 0x100;

/// The keys of its first memory region.
pub(crate) const FIRST_LOCAL_KEY: u32 = 0x1000;
pub(crate) const FIRST_REMOTE_KEY: u32 = 0x2000;

/// The device. Clones are the same device.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    /// Where commands are written, and the other end.
    commands: Arc<[UnixStream; 2]>,
    state: Arc<Mutex<State>>,
    resets: bool,
    transport: Transport,
    /// How many entries its queues have less than requested.
    missing: u32,
    /// Its requests complete individually.
    individually: bool,
    /// Its queue pairs complete all requests in ERR.
    flushes: bool,
    /// How many reads it may have outstanding.
    depth: u8,
}

#[derive(Debug, Default)]
struct State {
    sends: Vec<u64>,
    sg_lists: Vec<Vec<u32>>,
    receives: Vec<u64>,
    completions: VecDeque<WorkCompletion>,
    handles: u32,
    create_qp: Option<CreateQp>,
    taken_when_armed: Option<CompletionChannel>,
}

impl Stub {
    /// `resets`: its queue pairs discard their requests in RESET.
    pub(crate) fn new(resets: bool) -> Self {
        let (front, back) = UnixStream::pair().unwrap();
        for one in [&front, &back] {
            one.set_nonblocking(true).unwrap();
        }
        Self {
            commands: Arc::new([front, back]),
            state: Arc::default(),
            resets,
            transport: Transport::RoCE,
            missing: 0,
            individually: false,
            flushes: true,
            depth: 1,
        }
    }

    /// One whose requests complete individually, in any order.
    pub(crate) fn completing_individually() -> Self {
        Self {
            individually: true,
            ..Self::new(false)
        }
    }

    /// The same, and in ERR they may not complete at all.
    pub(crate) fn not_flushing() -> Self {
        Self {
            flushes: false,
            ..Self::completing_individually()
        }
    }

    /// One whose connections allow this many outstanding reads.
    pub(crate) fn with_depth(depth: u8) -> Self {
        Self {
            depth,
            ..Self::new(false)
        }
    }

    /// One of another transport.
    pub(crate) fn with_transport(transport: Transport) -> Self {
        Self {
            transport,
            ..Self::new(false)
        }
    }

    /// One whose queues have one entry less than requested.
    pub(crate) fn with_missing_entries() -> Self {
        Self {
            missing: 1,
            ..Self::new(false)
        }
    }

    /// Opens it. The kernel's answer to each command is zeros.
    pub(crate) fn open(&self) -> Context {
        let [front, _] = &*self.commands;
        let file = File::from(OwnedFd::from(front.try_clone().unwrap()));
        Context::of_uverbs(Uverbs::with_file(file, Arc::new(self.clone())))
    }

    /// Refuses commands from now on, or accepts them again.
    pub(crate) fn refuse(&self, refused: bool) {
        let [mut front, mut back] = self.commands.each_ref();
        let mut bytes = [0; 4096];
        // Until the socket is full, or empty.
        let error = loop {
            let moved = if refused {
                front.write(&bytes[..1])
            } else {
                back.read(&mut bytes)
            };
            if let Err(error) = moved {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    /// How many bytes of commands were written since the last call.
    pub(crate) fn command_bytes(&self) -> usize {
        let [_, mut back] = self.commands.each_ref();
        let mut bytes = [0; 4096];
        std::iter::from_fn(|| back.read(&mut bytes).ok()).sum()
    }

    /// A queue pair and its completion queue, which holds this many completions.
    pub(crate) fn queue_pair(&self, caps: QpCaps, entries: u32) -> (QueuePair, CompletionQueue) {
        let context = self.open();
        let queue = context.create_completion_queue(entries).unwrap();
        let options = QueuePair::options(QpType::RC).caps(caps);
        let options = options.send_cq(&queue).recv_cq(&queue);
        (options.create(&context).unwrap(), queue)
    }

    /// The numbers of the posted send requests, oldest first.
    pub(crate) fn sends(&self) -> Vec<u64> {
        self.state().sends.clone()
    }

    /// The request that created the last queue pair.
    pub(crate) fn last_create_qp(&self) -> Option<CreateQp> {
        self.state().create_qp
    }

    /// The lengths of the scatter/gather entries of each posted send request.
    pub(crate) fn sg_lists(&self) -> Vec<Vec<u32>> {
        self.state().sg_lists.clone()
    }

    /// The numbers of the posted receives, oldest first.
    pub(crate) fn receives(&self) -> Vec<u64> {
        self.state().receives.clone()
    }

    /// Completes a request.
    pub(crate) fn complete(&self, number: u64, status: WcStatus, opcode: WcOpcode) {
        self.state().completions.push_back(WorkCompletion {
            id: number,
            status,
            opcode,
            ..WorkCompletion::new_zeroed()
        });
    }

    /// Completes a receive request with a message to the queue pair of this number.
    pub(crate) fn complete_receive(&self, number: u64, qp_number: u32) {
        self.fail_receive(number, qp_number, WcStatus::SUCCESS);
    }

    /// Completes a receive request of the queue pair of this number with this status.
    pub(crate) fn fail_receive(&self, number: u64, qp_number: u32, status: WcStatus) {
        self.state().completions.push_back(WorkCompletion {
            id: number,
            status,
            opcode: WcOpcode::RECV,
            qp_number,
            ..WorkCompletion::new_zeroed()
        });
    }

    /// Takes a notification from this channel when a queue is armed next, as another thread may.
    pub(crate) fn take_when_armed(&self, channel: &CompletionChannel) {
        self.state().taken_when_armed = Some(channel.clone());
    }

    /// One of its queues.
    pub(crate) fn ring(&self, holds: u32) -> Ring {
        Ring(self.clone(), holds)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn next_handle(&self) -> u32 {
        let mut state = self.state();
        state.handles += 1;
        state.handles
    }
}

// SAFETY: it does not access the memory of any request.
#[expect(unsafe_code, reason = "asserts that the device accesses no memory")]
unsafe impl Provider for Stub {
    fn driver(&self) -> DriverId {
        DriverId::UNKNOWN
    }

    fn abi_version(&self) -> u32 {
        0
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn operations(&self, _: QpType) -> Opcodes {
        Opcodes::ALL
    }

    fn resets(&self) -> bool {
        self.resets
    }

    fn initiator_depth(&self, _: &QpAttr) -> u8 {
        self.depth
    }

    fn completes_individually(&self) -> bool {
        self.individually
    }

    fn flushes_all(&self) -> bool {
        self.flushes
    }

    fn overruns_reads(&self) -> bool {
        // As on siw.
        self.transport == Transport::IWarp
    }

    fn open(&self, _: &Uverbs) -> Result<GetContextResponse> {
        Ok(GetContextResponse::new_zeroed())
    }

    fn register(&self, _: &Uverbs, _: Operation, _: RegMr) -> Result<RegMrResponse> {
        let handle = self.next_handle();
        Ok(RegMrResponse {
            handle,
            lkey: FIRST_LOCAL_KEY + handle,
            rkey: FIRST_REMOTE_KEY + handle,
        })
    }

    fn create_cq(
        &self,
        _: &Uverbs,
        _: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, CompletionRings)> {
        let answer = CreateCqResponse {
            handle: self.next_handle(),
            entries: request.entries - self.missing,
        };
        let ring = self.ring(request.entries);
        Ok((answer, CompletionRings::Stub(ring)))
    }

    fn create_qp(&self, _: &Uverbs, _: Operation, request: CreateQp) -> Result<NewQueuePair> {
        let handle = self.next_handle();
        self.state().create_qp = Some(request);
        let answer = CreateQpResponse {
            handle,
            number: FIRST_NUMBER + handle,
            max_send_wr: request.max_send_wr - self.missing,
            max_recv_wr: request.max_recv_wr,
            max_send_sge: request.max_send_sge,
            max_recv_sge: request.max_recv_sge,
            max_inline_data: request.max_inline_data,
            ..CreateQpResponse::new_zeroed()
        };
        let ring = |holds| self.ring(holds);
        let has_receives = request.is_srq == 0 && request.max_recv_wr > 0;
        let receive = has_receives.then(|| ring(request.max_recv_wr));
        Ok(NewQueuePair {
            answer,
            send: SendRings::Stub(ring(request.max_send_wr)),
            receive: receive.map(ReceiveRings::Stub),
        })
    }

    fn create_srq(
        &self,
        _: &Uverbs,
        _: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, ReceiveRings)> {
        let ring = self.ring(request.max_wr);
        let answer = CreateSrqResponse {
            handle: self.next_handle(),
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            ..CreateSrqResponse::new_zeroed()
        };
        Ok((answer, ReceiveRings::Stub(ring)))
    }

    fn create_ah(&self, _: &Uverbs, _: Operation, _: CreateAh) -> Result<(CreateAhResponse, u32)> {
        Ok((CreateAhResponse::new_zeroed(), 0))
    }
}

/// One of its queues, with its capacity. It accepts any number of requests.
#[derive(Debug)]
pub(crate) struct Ring(Stub, u32);

impl SendRing for Ring {
    fn capacity(&self) -> u32 {
        self.1
    }

    fn max_inline(&self) -> u32 {
        64
    }

    fn max_sges(&self) -> u32 {
        4
    }

    fn room(&self, requests: usize) -> usize {
        requests
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let mut state = self.0.state();
        state.sends.push(request.number);
        if let SlotPayload::SgList(sg_list) = request.payload {
            state
                .sg_lists
                .push(sg_list.iter().map(|one| one.length).collect());
        }
    }
}

impl ReceiveRing for Ring {
    fn capacity(&self) -> u32 {
        self.1
    }

    fn max_sges(&self) -> u32 {
        4
    }

    fn room(&self, requests: usize) -> usize {
        requests
    }

    fn push(&mut self, number: u64, _: &[AbiSge]) {
        self.0.state().receives.push(number);
    }
}

impl CompletionRing for Ring {
    fn capacity(&self) -> u32 {
        self.1
    }

    fn oldest(&self) -> Option<(u32, WorkCompletion)> {
        Some((0, *self.0.state().completions.front()?))
    }

    fn remove(&mut self, _: u32) {
        self.0.state().completions.pop_front();
    }

    fn arm(&mut self) -> bool {
        let channel = self.0.state().taken_when_armed.take();
        if let Some(channel) = channel {
            assert_eq!(channel.try_next(), Ok(None));
        }
        false
    }

    fn resize(&mut self, _: &Uverbs, _: u32, entries: u32) -> Result<()> {
        self.1 = entries;
        Ok(())
    }
}
