//! What one side writes, the other one reads.

use proptest::collection::vec;
use proptest::prelude::*;
use rdmacm_rsocket::{ByteOrder, Control, Transport};

use crate::Pair;
use crate::side::{Setup, Side};

fn byte_order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)]
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![Just(Transport::Immediate), Just(Transport::Send)]
}

prop_compose! {
    fn setups()(
        transport in transport(),
        orders in [byte_order(), byte_order()],
        rings in [2..300_u32, 2..300_u32],
        windows in [1..40_u16, 1..40_u16],
        send_rings in [1..300_u32, 1..300_u32],
        requests in [2..20_u32, 2..20_u32],
    ) -> [Setup; 2] {
        std::array::from_fn(|side| Setup {
            transport,
            byte_order: orders[side],
            ring: rings[side],
            window: windows[side],
            send_ring: send_rings[side],
            requests: requests[side],
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize, usize),
    Read(usize, usize),
    Deliver(usize),
    Complete(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = || 0..2_usize;
    vec(
        prop_oneof![
            (side(), 1..200_usize).prop_map(|(side, bytes)| Step::Write(side, bytes)),
            (side(), 1..200_usize).prop_map(|(side, bytes)| Step::Read(side, bytes)),
            side().prop_map(Step::Deliver),
            (side(), 1..5_usize).prop_map(|(side, count)| Step::Complete(side, count)),
        ],
        0..400,
    )
}

/// The bytes of a direction: no two neighbours are equal, and the directions differ.
fn byte(from: usize, position: usize) -> u8 {
    (position.wrapping_mul(31) + from * 7).to_le_bytes()[0]
}

/// A pair that counts what each side has written and read.
struct Checked {
    pair: Pair,
    written: [usize; 2],
    read: [usize; 2],
    windows: [usize; 2],
}

impl Checked {
    fn new([one, other]: [Setup; 2]) -> Self {
        let mut pair = Pair::new(Side::new(one), Side::new(other));
        pair.update(0);
        pair.update(1);
        Self {
            pair,
            written: [0; 2],
            read: [0; 2],
            windows: [one.window.into(), other.window.into()],
        }
    }

    fn write(&mut self, from: usize, bytes: usize) -> usize {
        let start = self.written[from];
        let data: Vec<u8> = (start..start + bytes).map(|at| byte(from, at)).collect();
        let sent = self.pair.write(from, &data);
        self.written[from] += sent;
        sent
    }

    fn read(&mut self, at: usize, bytes: usize) -> usize {
        let data = self.pair.read(at, bytes);
        for (offset, value) in data.iter().enumerate() {
            assert_eq!(*value, byte(1 - at, self.read[at] + offset));
        }
        self.read[at] += data.len();
        data.len()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(side, bytes) => {
                self.write(side, bytes);
            }
            Step::Read(side, bytes) => {
                self.read(side, bytes);
            }
            Step::Deliver(side) => {
                self.pair.deliver(side);
            }
            Step::Complete(side, count) => self.pair.complete(side, count),
        }
        for side in 0..2 {
            let data = self.pair.networks[side].iter();
            let data = data.filter(|one| Side::is_data_message(one)).count();
            assert!(data <= self.windows[side], "more messages than credits");
        }
    }

    /// Delivers, completes and reads everything.
    fn settle(&mut self) {
        loop {
            let mut is_busy = false;
            for side in 0..2 {
                is_busy |= self.pair.deliver(side);
                is_busy |= self.read(side, usize::MAX) > 0;
                self.pair.complete(side, usize::MAX);
            }
            is_busy |= self.pair.networks.iter().any(|network| !network.is_empty());
            if !is_busy {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any order of writes, arrivals, completions and reads keeps every byte, in order, and
    /// never stalls the stream.
    #[test]
    fn bytes_arrive_in_order(setups in setups(), steps in steps()) {
        let mut checked = Checked::new(setups);
        for step in steps {
            checked.step(step);
        }
        checked.settle();
        prop_assert_eq!(checked.read[1], checked.written[0]);
        prop_assert_eq!(checked.read[0], checked.written[1]);
        for side in 0..2 {
            // Both rings are free again.
            prop_assert!(checked.write(side, 1) == 1, "the stream has stalled");
            checked.settle();
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// A transfer that is much longer than every ring and every counter of messages.
    #[test]
    fn counters_wrap_around(mut setups in setups()) {
        setups[1].window = setups[1].window.min(7);
        let mut checked = Checked::new(setups);
        let mut messages = 0_u32;
        while messages < 70_000 {
            let sent = checked.write(0, 1);
            messages += u32::try_from(sent).unwrap();
            if sent == 0 {
                let before = checked.read[1];
                checked.settle();
                prop_assert!(checked.read[1] > before, "the stream has stalled");
            }
        }
        checked.settle();
        prop_assert_eq!(checked.read[1], checked.written[0]);
    }
}

#[test]
fn what_was_sent_before_the_end_is_read_after_it() {
    let setup = Setup {
        transport: Transport::Immediate,
        byte_order: ByteOrder::Little,
        ring: 64,
        window: 8,
        send_ring: 64,
        requests: 8,
    };
    let mut checked = Checked::new([setup; 2]);
    assert_eq!(checked.write(0, 20), 20);
    checked.pair.control(0, Control::Shutdown);
    while checked.pair.deliver(1) {}
    assert!(checked.pair.sides[1].shutdown.peer_finished());
    assert_eq!(checked.read(1, 100), 20);
    assert_eq!(checked.write(1, 10), 10);
    checked.settle();
    assert_eq!(checked.read[0], 10);
}
