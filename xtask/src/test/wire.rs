//! Two guests on one wire: what happens to a connection when the peer refuses,
//! falls silent, dies or comes back.

mod act;
mod dead;
mod frozen;
mod healthy;
mod pair;
mod restarted;
mod side;
mod soft;
mod stage;
mod status;

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::guest::Guest;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

use self::act::{Act, Turn};
use self::soft::Soft;
use self::stage::Scene;

/// What is played, in this order.
const ACTS: [Act; 4] = [
    Act {
        turns: &[],
        cases: healthy::CASES,
    },
    Act {
        turns: &[Turn::Freeze, Turn::Thaw],
        cases: frozen::CASES,
    },
    Act {
        turns: &[Turn::Kill, Turn::Restart, Turn::Plug],
        cases: restarted::CASES,
    },
    Act {
        turns: &[Turn::Kill, Turn::Nothing],
        cases: dead::CASES,
    },
];
/// How many of them the first of two pairs of guests plays.
const FIRST: usize = 2;

/// Which tests to play.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    /// Those that last seconds.
    pub(crate) short: bool,
    /// Those that last until RoCE's patience is over, which is more than a minute.
    pub(crate) long: bool,
    /// What must be in their names.
    pub(crate) name: &'a str,
}

impl Selection<'static> {
    /// Those that last seconds, and no others.
    pub(crate) const SHORT: Self = Self {
        short: true,
        long: false,
        name: "",
    };
    /// The others.
    pub(crate) const LONG: Self = Self {
        short: false,
        long: true,
        name: "",
    };
}

/// A test: its name and what it does on each device.
struct Case {
    name: &'static str,
    /// Where it lasts seconds.
    short: &'static [Soft],
    /// Where it lasts more than a minute.
    long: &'static [Soft],
    story: for<'s> fn(Scene<'s>) -> act::Story<'s>,
}

impl Case {
    /// The devices it is played on.
    fn on(&self, selection: Selection<'_>) -> impl Iterator<Item = Soft> {
        let chosen = |softs: &'static [Soft], chosen: bool| softs.iter().filter(move |_| chosen);
        chosen(self.short, selection.short)
            .chain(chosen(self.long, selection.long))
            .copied()
    }
}

/// Lists a module's tests by their functions' names, with the devices on which they
/// last seconds, and those on which they last more than a minute.
macro_rules! cases {
    ($(short $short:ident, long $long:ident: $($name:ident),+ $(,)?;)+) => {
        /// The tests of this module.
        pub(super) const CASES: &[super::Case] = &[
            $($(super::Case {
                name: concat!("wire::", stringify!($name)),
                short: super::soft::$short,
                long: super::soft::$long,
                story: |scene| Box::pin($name(scene)),
            }),+),+
        ];
    };
}
use cases;

/// Plays the tests that are selected, on every kernel at once.
///
/// Most of the long ones is waiting, so there are two pairs of guests for them; booting
/// a pair takes longer than all the short ones.
pub(crate) fn run(
    workspace: &Workspace,
    guests: &[Guest],
    selection: Selection<'_>,
    totals: &mut Totals,
) {
    let program = workspace.programs().join("rdmacm-wire");
    let plays = if selection.long {
        vec![&ACTS[..FIRST], &ACTS[FIRST..]]
    } else {
        vec![&ACTS[..]]
    };
    let (tell, results) = channel();
    thread::scope(|scope| {
        for guest in guests {
            eprintln!("two guests on a wire, on the {} ...", guest.kernel);
            for acts in &plays {
                let (tell, program) = (tell.clone(), &program);
                scope.spawn(move || play(guest, program, acts, selection, &tell));
            }
        }
        drop(tell);
        for (name, result, time) in results {
            totals.took(&name, time);
            totals.step(&name, result);
        }
    });
}

/// A test's name, its result, and how long it took.
type Told = (String, anyhow::Result<()>, Duration);

fn play(
    guest: &Guest,
    program: &Path,
    acts: &[Act],
    selection: Selection<'_>,
    tell: &Sender<Told>,
) {
    let name = |soft, case: &str| format!("{}/{soft}/{case}", guest.kernel.name);
    let chosen = |case: &'static Case| {
        let on = case.on(selection);
        let on = on.filter(|&soft| name(soft, case.name).contains(selection.name));
        on.collect()
    };
    act::play(
        guest,
        program,
        acts,
        &chosen,
        &mut |soft, case, result, time| {
            // Whoever hears it outlives every play.
            let _ = tell.send((name(soft, case), result, time));
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_selected_once_on_each_of_its_devices() {
        for case in ACTS.iter().flat_map(|act| act.cases) {
            let devices = |selection| case.on(selection).map(Soft::device);
            let short = devices(Selection::SHORT);
            let mut devices: Vec<_> = short.chain(devices(Selection::LONG)).collect();
            let selected = devices.len();
            devices.sort_unstable();
            devices.dedup();
            assert_eq!(devices.len(), selected, "{}", case.name);
            assert_ne!(selected, 0, "{}", case.name);
        }
    }
}
