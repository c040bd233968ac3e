//! A device that is a test: it keeps what it is given and tells what it is told to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{
    CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateQpResponse, CreateSrq,
    CreateSrqResponse, DriverId, GetContextResponse, RegMr, RegMrResponse, Sge as AbiSge, WcOpcode,
    WcStatus, WorkCompletion,
};
use rdmacm_core::{QpAttr, QpType, Transport};
use zerocopy::FromZeros;

use super::{
    CompletionRing, NewQueuePair, Provider, ReceiveRing, SendRing, SendSlot, SlotPayload, Uverbs,
};
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::Result;
use crate::operation::Operation;
use crate::queue_pair::{QpCaps, QueuePair};
use crate::request::SendOperation;

/// Its queue pairs are numbered from here.
pub(crate) const FIRST_NUMBER: u32 = 0x100;

/// So are the keys of its memory.
pub(crate) const FIRST_LOCAL_KEY: u32 = 0x1000;
pub(crate) const FIRST_REMOTE_KEY: u32 = 0x2000;

/// The device, of which clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Stub {
    /// Where commands go, and where they come out.
    commands: Arc<[UnixStream; 2]>,
    held: Arc<Mutex<Held>>,
    resets: bool,
    transport: Transport,
    /// How many entries its queues lack.
    lacks: u32,
    /// Its requests are done one by one.
    apart: bool,
    /// Its queue pairs in ERR complete what they have.
    flushes: bool,
    /// How many reads it has under way.
    depth: u8,
}

#[derive(Debug, Default)]
struct Held {
    sends: Vec<u64>,
    sg_list: Vec<Vec<u32>>,
    receives: Vec<u64>,
    told: VecDeque<WorkCompletion>,
    handles: u32,
    asked: Option<CreateQp>,
}

impl Stub {
    /// One whose queue pairs forget their requests in RESET, or do not.
    pub(crate) fn new(resets: bool) -> Self {
        let (front, back) = UnixStream::pair().unwrap();
        for one in [&front, &back] {
            one.set_nonblocking(true).unwrap();
        }
        Self {
            commands: Arc::new([front, back]),
            held: Arc::default(),
            resets,
            transport: Transport::RoCE,
            lacks: 0,
            apart: false,
            flushes: true,
            depth: 1,
        }
    }

    /// One whose requests are done one by one, in any order.
    pub(crate) fn apart() -> Self {
        Self {
            apart: true,
            ..Self::new(false)
        }
    }

    /// The same, and in ERR they need not be done at all.
    pub(crate) fn forgetful() -> Self {
        Self {
            flushes: false,
            ..Self::apart()
        }
    }

    /// One whose connections have so many reads under way.
    pub(crate) fn of_depth(depth: u8) -> Self {
        Self {
            depth,
            ..Self::new(false)
        }
    }

    /// One of another transport.
    pub(crate) fn of_transport(transport: Transport) -> Self {
        Self {
            transport,
            ..Self::new(false)
        }
    }

    /// One whose queues have an entry less than they are asked for.
    pub(crate) fn stingy() -> Self {
        Self {
            lacks: 1,
            ..Self::new(false)
        }
    }

    /// It opened. To every command the kernel's answer is zeros.
    pub(crate) fn open(&self) -> Context {
        let [front, _] = &*self.commands;
        let file = File::from(OwnedFd::from(front.try_clone().unwrap()));
        Context::of_uverbs(Uverbs::of_file(file, Arc::new(self.clone())))
    }

    /// Refuses commands from now on, or no more.
    pub(crate) fn refuse(&self, refused: bool) {
        let [mut front, mut back] = self.commands.each_ref();
        let mut bytes = [0; 4096];
        // It is full then, or empty.
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

    /// How many bytes of commands it was sent since the last question.
    pub(crate) fn told_bytes(&self) -> usize {
        let [_, mut back] = self.commands.each_ref();
        let mut bytes = [0; 4096];
        std::iter::from_fn(|| back.read(&mut bytes).ok()).sum()
    }

    /// A queue pair and the one queue where it reports, with room for so many
    /// completions.
    pub(crate) fn queue_pair(&self, caps: QpCaps, entries: u32) -> (QueuePair, CompletionQueue) {
        let context = self.open();
        let queue = context.create_completion_queue(entries).unwrap();
        let options = QueuePair::options(QpType::RC).caps(caps);
        let options = options.send_queue(&queue).receive_queue(&queue);
        (options.create(&context).unwrap(), queue)
    }

    /// The numbers of the send requests it was given, oldest first.
    pub(crate) fn sends(&self) -> Vec<u64> {
        self.held().sends.clone()
    }

    /// What the last queue pair was to be like.
    pub(crate) fn asked(&self) -> Option<CreateQp> {
        self.held().asked
    }

    /// How long the pieces of memory are that the send requests name.
    pub(crate) fn sg_list(&self) -> Vec<Vec<u32>> {
        self.held().sg_list.clone()
    }

    /// The numbers of the receives it was given, oldest first.
    pub(crate) fn receives(&self) -> Vec<u64> {
        self.held().receives.clone()
    }

    /// Completes a request.
    pub(crate) fn complete(&self, number: u64, status: WcStatus, opcode: WcOpcode) {
        self.held().told.push_back(WorkCompletion {
            id: number,
            status,
            opcode,
            ..WorkCompletion::new_zeroed()
        });
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_handle(&self) -> u32 {
        let mut held = self.held();
        held.handles += 1;
        held.handles
    }
}

// SAFETY: it touches no memory of any request.
#[expect(unsafe_code, reason = "vouches for a device that does nothing")]
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

    fn can(&self, _: QpType, _: &SendOperation) -> bool {
        true
    }

    fn resets(&self) -> bool {
        self.resets
    }

    fn initiator_depth(&self, _: &QpAttr) -> u8 {
        self.depth
    }

    fn completes_individually(&self) -> bool {
        self.apart
    }

    fn flushes_all(&self) -> bool {
        self.flushes
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
    ) -> Result<(CreateCqResponse, Box<dyn CompletionRing>)> {
        let answer = CreateCqResponse {
            handle: self.next_handle(),
            entries: request.entries - self.lacks,
        };
        let ring = Ring(self.clone(), request.entries);
        Ok((answer, Box::new(ring)))
    }

    fn create_qp(&self, _: &Uverbs, _: Operation, request: CreateQp) -> Result<NewQueuePair> {
        let handle = self.next_handle();
        self.held().asked = Some(request);
        let answer = CreateQpResponse {
            handle,
            number: FIRST_NUMBER + handle,
            max_send_wr: request.max_send_wr - self.lacks,
            max_recv_wr: request.max_recv_wr,
            max_send_sge: request.max_send_sge,
            max_recv_sge: request.max_recv_sge,
            max_inline_data: request.max_inline_data,
            ..CreateQpResponse::new_zeroed()
        };
        let ring = |holds| Ring(self.clone(), holds);
        let receive = (request.is_srq == 0).then(|| ring(request.max_recv_wr));
        Ok(NewQueuePair::new(
            answer,
            ring(request.max_send_wr),
            receive,
        ))
    }

    fn create_srq(
        &self,
        _: &Uverbs,
        _: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, Box<dyn ReceiveRing>)> {
        let ring = Ring(self.clone(), request.max_wr);
        let answer = CreateSrqResponse {
            handle: self.next_handle(),
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            ..CreateSrqResponse::new_zeroed()
        };
        Ok((answer, Box::new(ring)))
    }

    fn create_ah(&self, _: &Uverbs, _: Operation, _: CreateAh) -> Result<(CreateAhResponse, u32)> {
        Ok((CreateAhResponse::new_zeroed(), 0))
    }

    fn limit_srq(&self, _: &Uverbs, _: Operation, _: u32, _: u32) -> Result<()> {
        Ok(())
    }
}

/// One of its queues, and how many requests that holds. There is always room.
#[derive(Debug)]
struct Ring(Stub, u32);

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

    fn has_room(&self, _: usize) -> bool {
        true
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let mut held = self.0.held();
        held.sends.push(request.number);
        if let SlotPayload::SgList(sg_list) = request.payload {
            held.sg_list
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

    fn has_room(&self) -> bool {
        true
    }

    fn push(&mut self, number: u64, _: &[AbiSge]) {
        self.0.held().receives.push(number);
    }
}

impl CompletionRing for Ring {
    fn capacity(&self) -> u32 {
        self.1
    }

    fn pop(&mut self) -> Option<WorkCompletion> {
        self.0.held().told.pop_front()
    }

    fn resize(&mut self, _: &Uverbs, _: u32, entries: u32) -> Result<()> {
        self.1 = entries;
        Ok(())
    }
}
