//! Random calls of both sides, compared with a model of what is in flight.

use std::collections::VecDeque;

use proptest::prelude::*;
use rdmacm::core::AccessFlags;
use rdmacm::verbs::{Buffer, RemoteAccessRegion};
use rdmacm::{Connection, Message, MessageOptions, Transfer};

use super::{Hosts, SECOND};

const SENDS: usize = 3;
const RECEIVES: usize = 4;
/// Bytes of the memory that is exposed.
const LENGTH: usize = 8;

/// A call of one side, 0 or 1.
#[derive(Clone, Copy, Debug)]
enum Step {
    TrySend(usize),
    TryReceive(usize),
    /// Drops one of the messages that a side has received.
    DropMessage(usize, usize),
    /// Starts a transfer, if there is room.
    Start(usize, Kind),
    /// Drops or waits for one of the transfers of a side.
    End(usize, usize, bool),
    /// Time passes.
    Advance,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Send,
    Read,
    Write,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![Just(Kind::Send), Just(Kind::Read), Just(Kind::Write)];
    let side = 0..2_usize;
    let step = prop_oneof![
        4 => side.clone().prop_map(Step::TrySend),
        4 => side.clone().prop_map(Step::TryReceive),
        2 => (side.clone(), 0..8_usize).prop_map(|(side, one)| Step::DropMessage(side, one)),
        3 => (side.clone(), kind).prop_map(|(side, kind)| Step::Start(side, kind)),
        2 => (side, 0..8_usize, any::<bool>()).prop_map(|(side, one, waits)| {
            Step::End(side, one, waits)
        }),
        3 => Just(Step::Advance),
    ];
    prop::collection::vec(step, 1..120)
}

/// One side, and what the model knows of it.
struct Side<'a> {
    connection: &'a Connection,
    /// The peer's memory.
    region: &'a RemoteAccessRegion,
    transfers: Vec<Transfer<'a, Buffer>>,
    kept: Vec<Message>,
    /// The numbers of the messages that the peer has sent, and this side has not received.
    expected: VecDeque<u64>,
}

struct Model<'a> {
    hosts: &'a Hosts,
    sides: [Side<'a>; 2],
    last: u64,
}

impl Model<'_> {
    fn run(&mut self, step: Step) {
        match step {
            Step::TrySend(side) => self.try_send(side),
            Step::TryReceive(side) => self.try_receive(side),
            Step::DropMessage(side, one) => {
                let kept = &mut self.sides[side].kept;
                if one < kept.len() {
                    kept.swap_remove(one);
                }
            }
            Step::Start(side, kind) => self.start(side, kind),
            Step::End(side, one, waits) => self.end(side, one, waits),
            Step::Advance => self.hosts.fabric.advance(SECOND / 2),
        }
    }

    /// The next message, which is a number.
    fn next_message(&mut self) -> [u8; LENGTH] {
        self.last += 1;
        self.last.to_be_bytes()
    }

    fn try_send(&mut self, side: usize) {
        let message = self.next_message();
        let sent = self.sides[side].connection.try_send(&message).unwrap();
        if sent.is_sent() {
            self.sides[1 - side].expected.push_back(self.last);
        }
    }

    fn try_receive(&mut self, side: usize) {
        let side = &mut self.sides[side];
        let Some(message) = side.connection.try_receive().unwrap() else {
            return;
        };
        // In order, and each once.
        let number = side.expected.pop_front().unwrap();
        assert_eq!(message[..], number.to_be_bytes());
        side.kept.push(message);
        // A receive request is posted for each message that is dropped.
        assert!(side.kept.len() <= RECEIVES);
    }

    fn start(&mut self, side: usize, kind: Kind) {
        let message = self.next_message();
        let Side {
            connection, region, ..
        } = self.sides[side];
        let mut buffer = connection.allocate(LENGTH).unwrap();
        buffer.copy_from_slice(&message);
        // There is room now, or there is none.
        connection.set_deadline(std::time::Duration::ZERO);
        let started = match kind {
            Kind::Send => connection.start_send(buffer),
            Kind::Read => connection.start_read(buffer, region.remote()),
            Kind::Write => connection.start_write(buffer, region.remote()),
        };
        connection.set_deadline(None);
        match started {
            Ok(transfer) => {
                self.sides[side].transfers.push(transfer);
                if matches!(kind, Kind::Send) {
                    self.sides[1 - side].expected.push_back(self.last);
                }
            }
            Err(failed) => {
                assert!(failed.error.is_timeout(), "{}", failed.error);
                assert_eq!(failed.buffer.unwrap()[..], message);
            }
        }
        let under_way = &self.sides[side].transfers;
        let under_way = under_way.iter().filter(|transfer| !transfer.is_done());
        assert!(under_way.count() <= SENDS);
    }

    fn end(&mut self, side: usize, one: usize, waits: bool) {
        let side = &mut self.sides[side];
        if one >= side.transfers.len() {
            return;
        }
        let transfer = side.transfers.swap_remove(one);
        if waits && transfer.is_done() {
            assert_eq!(transfer.wait().unwrap().len(), LENGTH);
        }
    }

    /// Everything that was sent arrives.
    fn finish(&mut self) {
        for rounds in 0.. {
            assert!(rounds < 1000, "messages are lost");
            let mut is_done = true;
            for side in [0, 1] {
                self.sides[side].kept.clear();
                self.try_receive(side);
                is_done &= self.sides[side].expected.is_empty();
            }
            if is_done {
                break;
            }
            self.hosts.fabric.advance(SECOND);
        }
        for side in &mut self.sides {
            side.connection.set_deadline(60 * SECOND);
            for transfer in side.transfers.drain(..) {
                transfer.wait().unwrap();
            }
            side.connection.flush().unwrap();
            side.kept.clear();
        }
    }
}

fn run(steps: &[Step], loss: u8) {
    let hosts = Hosts::roce();
    let options = MessageOptions::new()
        .size(16)
        .sends(SENDS.try_into().unwrap());
    let options = options.receives(RECEIVES.try_into().unwrap());
    let (near, far) = hosts.connect_with(options.clone(), options);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
    let regions = [&near, &far].map(|side| side.expose(LENGTH, access).unwrap());
    let objects = || [&hosts.client, &hosts.server].map(rdmacm_sim::Host::verbs_objects);
    let before = objects();
    hosts.fabric.set_delay(SECOND / 4);
    hosts.fabric.set_loss(loss);
    let side = |connection, region| Side {
        connection,
        region,
        transfers: Vec::new(),
        kept: Vec::new(),
        expected: VecDeque::new(),
    };
    let mut model = Model {
        hosts: &hosts,
        sides: [side(&near, &regions[1]), side(&far, &regions[0])],
        last: 0,
    };
    for step in steps {
        model.run(*step);
    }
    model.finish();
    drop(model);
    assert_eq!(objects(), before);
    hosts.fabric.set_loss(0);
    drop((regions, near, far));
    hosts.assert_clean();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn calls_agree_with_the_model(steps in steps()) {
        run(&steps, 0);
    }

    #[test]
    fn calls_agree_with_the_model_on_a_lossy_network(steps in steps()) {
        run(&steps, 10);
    }
}
