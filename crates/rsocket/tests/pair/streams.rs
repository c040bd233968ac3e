//! What one side writes, the other one reads.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use rdmacm_rsocket::{ByteOrder, Control, How, MapEntry, Transport};

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
        entries in [2..=8_u32, 2..=8_u32],
        map_entries in [0..4_u16, 0..4_u16],
    ) -> [Setup; 2] {
        std::array::from_fn(|side| Setup {
            transport,
            byte_order: orders[side],
            ring: rings[side],
            window: windows[side],
            send_ring: send_rings[side],
            requests: requests[side],
            entries: entries[side],
            map_entries: map_entries[side],
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize, usize),
    Read(usize, usize),
    /// A write is in memory before its message arrives.
    Place(usize),
    Deliver(usize),
    Complete(usize, usize),
    Map(usize, u16, MapEntry),
    /// A word that has no effect.
    Ignored(usize, u32),
    Close(usize, How),
}

pub(crate) fn how() -> impl Strategy<Value = How> {
    prop_oneof![Just(How::Read), Just(How::Write), Just(How::Both)]
}

fn map_entry() -> impl Strategy<Value = MapEntry> {
    let fields = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    fields.prop_map(|(offset, address, key, length)| MapEntry {
        offset,
        address,
        key,
        length,
    })
}

/// Of keep-alives, unknown controls, and what librdmacm counts for itself.
fn ignored_word() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0xe000_0001),
        0xe000_0003..=u32::MAX,
        0x4000_0000..0x6000_0000_u32,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = || 0..2_usize;
    vec(
        prop_oneof![
            (side(), 1..200_usize).prop_map(|(side, bytes)| Step::Write(side, bytes)),
            (side(), 1..200_usize).prop_map(|(side, bytes)| Step::Read(side, bytes)),
            side().prop_map(Step::Place),
            side().prop_map(Step::Deliver),
            (side(), 1..5_usize).prop_map(|(side, count)| Step::Complete(side, count)),
            (side(), 0..4_u16, map_entry())
                .prop_map(|(side, index, entry)| Step::Map(side, index, entry)),
            (side(), ignored_word()).prop_map(|(side, word)| Step::Ignored(side, word)),
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
    maps: [Vec<(u16, MapEntry)>; 2],
    told: [Vec<Control>; 2],
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
            maps: Default::default(),
            told: Default::default(),
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
            Step::Place(side) => self.pair.place(side),
            Step::Complete(side, count) => self.pair.complete(side, count),
            Step::Map(side, index, entry) => {
                let is_sent = self.pair.map(side, index, entry);
                self.maps[side].extend(is_sent.then_some((index, entry)));
            }
            Step::Ignored(side, word) => self.pair.send(side, word),
            Step::Close(side, how) => self.told[side].extend(self.pair.close(side, how)),
        }
        for side in 0..2 {
            let data = self.pair.networks[side].iter();
            let data = data.filter(|one| Side::is_data_message(one)).count();
            assert!(data <= self.windows[side], "more messages than credits");
        }
    }

    /// Everything that was sent has arrived.
    fn expect_all(&self) {
        for side in 0..2 {
            assert_eq!(self.read[1 - side], self.written[side]);
            assert_maps(&self.pair.sides[1 - side].maps, &self.maps[side]);
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

/// Each entry was reported, as it was sent or, if it was written again before, as it was later.
fn assert_maps(reported: &[(u16, MapEntry)], sent: &[(u16, MapEntry)]) {
    assert_eq!(reported.len(), sent.len());
    for (position, map) in reported.iter().enumerate() {
        assert_eq!(map.0, sent[position].0);
        assert!(sent[position..].contains(map), "{map:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any order of writes, maps, arrivals, completions and reads keeps every byte and every map,
    /// in order, and never stalls the stream.
    #[test]
    fn bytes_arrive_in_order(setups in setups(), steps in steps()) {
        let mut checked = Checked::new(setups);
        for step in steps {
            checked.step(step);
        }
        checked.settle();
        checked.expect_all();
        for side in 0..2 {
            // Both rings are free again.
            prop_assert!(checked.write(side, 1) == 1, "the stream has stalled");
            checked.settle();
        }
    }

    /// The same, while the sides close their directions: what was written before arrives, then
    /// the end of what was closed, and nothing else.
    #[test]
    fn what_is_closed_ends_after_its_last_byte(
        setups in setups(),
        steps in steps(),
        ends in vec((any::<Index>(), 0..2_usize, how()), 1..6),
    ) {
        let mut steps = steps;
        for (place, side, how) in ends {
            let place = place.index(steps.len() + 1);
            steps.insert(place, Step::Close(side, how));
        }
        let mut checked = Checked::new(setups);
        for step in steps {
            checked.step(step);
        }
        checked.settle();
        checked.expect_all();
        for side in 0..2 {
            let shutdown = checked.pair.sides[side].shutdown;
            let told = &checked.told[1 - side];
            prop_assert_eq!(shutdown.peer_finished(), !told.is_empty());
            let is_told = told.contains(&Control::Disconnect);
            prop_assert_eq!(shutdown.peer_disconnected(), is_told);
            let can_write = shutdown.can_write();
            let written = checked.write(side, 1);
            prop_assert!(written == usize::from(can_write), "the stream has stalled");
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
        entries: 2,
        map_entries: 0,
    };
    let mut checked = Checked::new([setup; 2]);
    assert_eq!(checked.write(0, 20), 20);
    checked.step(Step::Close(0, How::Write));
    while checked.pair.deliver(1) {}
    assert!(checked.pair.sides[1].shutdown.peer_finished());
    assert_eq!(checked.read(1, 100), 20);
    assert_eq!(checked.write(1, 10), 10);
    checked.settle();
    assert_eq!(checked.read[0], 10);
}
