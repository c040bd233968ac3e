//! A driver that completes what was not posted.
#![expect(unsafe_code, reason = "a driver of the test's own is vouched for")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rdmacm_abi::uverbs::{
    CreateAh, CreateAhResponse, CreateCq, CreateCqResponse, CreateQp, CreateSrq, CreateSrqResponse,
    DriverId, GetContextResponse, RegMr, RegMrResponse, WorkCompletion,
};
use rdmacm_core::{QpAttr, QpAttrMask, QpType, Transport};
use rdmacm_tests::{PATIENCE, Pair, Site, Soft};
use rdmacm_verbs::provider::{
    CompletionRing, NewQueuePair, Provider, ReceiveRing, Rxe, Siw, Uverbs,
};
use rdmacm_verbs::{Context, Error, Operation, QueuePair, Result, SendOperation};

use super::{ROOMY, brought, perform, piece, received, room};

crate::cases!("data::strange":
    what_was_not_posted_is_an_error,
    what_was_not_posted_ends_a_batch,
    what_is_of_no_queue_is_passed_over,
);

/// What the driver is to say before the truth, and what it said last.
#[derive(Debug, Default)]
struct Script {
    lies: VecDeque<WorkCompletion>,
    /// What it is to say right behind the next truth.
    after: Option<WorkCompletion>,
    last: Option<WorkCompletion>,
}

type Shared = Arc<Mutex<Script>>;

/// A driver with words put into its mouth.
#[derive(Debug)]
struct Strange {
    driver: Box<dyn Provider>,
    script: Shared,
}

#[derive(Debug)]
struct StrangeRing {
    ring: Box<dyn CompletionRing>,
    script: Shared,
}

impl CompletionRing for StrangeRing {
    fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    fn pop(&mut self) -> Option<WorkCompletion> {
        let mut script = self.script.lock().unwrap();
        if let Some(lie) = script.lies.pop_front() {
            return Some(lie);
        }
        let told = self.ring.pop()?;
        script.last = Some(told);
        if let Some(after) = script.after.take() {
            script.lies.push_back(after);
        }
        Some(told)
    }

    fn arm(&mut self, uverbs: &Uverbs, queue: u32, solicited_only: bool) -> Result<()> {
        self.ring.arm(uverbs, queue, solicited_only)
    }

    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()> {
        self.ring.resize(uverbs, queue, entries)
    }
}

// SAFETY: what it completes besides the driver's own is of no request that is
// outstanding, so it gives no memory back.
unsafe impl Provider for Strange {
    fn driver(&self) -> DriverId {
        self.driver.driver()
    }

    fn abi_version(&self) -> u32 {
        self.driver.abi_version()
    }

    fn transport(&self) -> Transport {
        self.driver.transport()
    }

    fn tells(&self) -> QpAttrMask {
        self.driver.tells()
    }

    fn can(&self, qp_type: QpType, operation: &SendOperation) -> bool {
        self.driver.can(qp_type, operation)
    }

    fn can_inline(&self, operation: &SendOperation) -> bool {
        self.driver.can_inline(operation)
    }

    fn completes_apart(&self) -> bool {
        self.driver.completes_apart()
    }

    fn initiator_depth(&self, attr: &QpAttr) -> u8 {
        self.driver.initiator_depth(attr)
    }

    fn max_read_pieces(&self) -> u32 {
        self.driver.max_read_pieces()
    }

    fn open(&self, uverbs: &Uverbs) -> Result<GetContextResponse> {
        self.driver.open(uverbs)
    }

    fn register(&self, uverbs: &Uverbs, of: Operation, request: RegMr) -> Result<RegMrResponse> {
        self.driver.register(uverbs, of, request)
    }

    fn create_cq(
        &self,
        uverbs: &Uverbs,
        of: Operation,
        request: CreateCq,
    ) -> Result<(CreateCqResponse, Box<dyn CompletionRing>)> {
        let (answer, ring) = self.driver.create_cq(uverbs, of, request)?;
        let script = Arc::clone(&self.script);
        Ok((answer, Box::new(StrangeRing { ring, script })))
    }

    fn create_qp(&self, uverbs: &Uverbs, of: Operation, request: CreateQp) -> Result<NewQueuePair> {
        self.driver.create_qp(uverbs, of, request)
    }

    fn create_srq(
        &self,
        uverbs: &Uverbs,
        of: Operation,
        request: CreateSrq,
    ) -> Result<(CreateSrqResponse, Box<dyn ReceiveRing>)> {
        self.driver.create_srq(uverbs, of, request)
    }

    fn create_ah(
        &self,
        uverbs: &Uverbs,
        of: Operation,
        request: CreateAh,
    ) -> Result<(CreateAhResponse, u32)> {
        self.driver.create_ah(uverbs, of, request)
    }

    fn limit_srq(&self, uverbs: &Uverbs, of: Operation, handle: u32, limit: u32) -> Result<()> {
        self.driver.limit_srq(uverbs, of, handle, limit)
    }
}

/// A connection whose server's driver is strange.
fn pair(site: &Site) -> (Pair, Shared) {
    let script = Shared::default();
    let driver: Box<dyn Provider> = match site.soft {
        Soft::Rxe => Box::new(Rxe),
        Soft::Siw => Box::new(Siw),
    };
    let strange = Strange {
        driver,
        script: Arc::clone(&script),
    };
    let context = Context::open_with(&site.rdma_device(), &[Arc::new(strange)]).unwrap();
    let options = QueuePair::options(QpType::RC).caps(ROOMY).waitable();
    let server = options.create(&context).unwrap();
    let pair = site.pair_of(site.queue_pair_with(ROOMY), server);
    (pair, script)
}

/// A message arrives as ever.
fn assert_works(pair: &Pair) {
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    server.post_receive(room(server, 4)).unwrap();
    drop(perform(client, SendOperation::Send, piece(client, b"true")));
    assert_eq!(brought(received(server), 4), b"true");
}

fn what_was_not_posted_is_an_error(site: &Site) {
    let (pair, script) = pair(site);
    let server = &pair.server.queue_pair;
    assert_works(&pair);
    let truth = script.lock().unwrap().last.unwrap();
    server.post_receive(room(server, 4)).unwrap();
    // Once more, and others of the same queue.
    for number in [0, 0x7777, 0x8000_0000, 0xffff_ffff] {
        let id = truth.id ^ number;
        script
            .lock()
            .unwrap()
            .lies
            .push_back(WorkCompletion { id, ..truth });
        let stray = server.receive_queue().poll().unwrap_err();
        assert_eq!(stray, Error::Stray { number: id });
        assert!(server.receive_queue().poll().unwrap().is_none());
    }
    // What was posted is still there, and comes first.
    let client = &pair.client.queue_pair;
    drop(perform(client, SendOperation::Send, piece(client, b"1234")));
    assert_eq!(brought(received(server), 4), b"1234");
    assert_works(&pair);
}

/// What was taken before is handed out, and then the error.
fn what_was_not_posted_ends_a_batch(site: &Site) {
    let (pair, script) = pair(site);
    let server = &pair.server.queue_pair;
    assert_works(&pair);
    server.post_receive(room(server, 4)).unwrap();
    server.post_receive(room(server, 4)).unwrap();
    let client = &pair.client.queue_pair;
    drop(perform(client, SendOperation::Send, piece(client, b"1234")));
    assert_eq!(brought(received(server), 4), b"1234");
    let truth = script.lock().unwrap().last.unwrap();
    drop(perform(client, SendOperation::Send, piece(client, b"5678")));
    script.lock().unwrap().after = Some(truth);
    let queue = server.receive_queue();
    let mut taken = Vec::new();
    let until = Instant::now() + PATIENCE;
    while taken.is_empty() && Instant::now() < until {
        assert!(queue.poll_into(&mut taken, 8).unwrap() <= 1);
    }
    assert_eq!(brought(taken.pop().unwrap(), 4), b"5678");
    let stray = Error::Stray { number: truth.id };
    assert_eq!(queue.poll_into(&mut taken, 8), Err(stray));
    assert_eq!(queue.poll_into(&mut taken, 8), Ok(0));
}

/// So are completions of a queue pair that is gone.
fn what_is_of_no_queue_is_passed_over(site: &Site) {
    let (pair, script) = pair(site);
    assert_works(&pair);
    let truth = script.lock().unwrap().last.unwrap();
    for id in [0, u64::MAX, !truth.id] {
        let lies = (0..100).map(|_| WorkCompletion { id, ..truth });
        script.lock().unwrap().lies.extend(lies);
        let queue = pair.server.queue_pair.receive_queue();
        assert!(queue.poll().unwrap().is_none());
    }
    assert_works(&pair);
}
