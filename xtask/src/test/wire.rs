//! Two guests on one wire: what happens to a connection when the peer refuses,
//! falls silent, dies or comes back.

mod act;
mod dead;
mod frozen;
mod pair;
mod restarted;
mod side;
mod soft;
mod stage;
mod status;
mod well;

use std::sync::mpsc::channel;
use std::thread;

use crate::guest::Guest;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

use self::act::{Act, Turn};
use self::soft::Soft;
use self::stage::Scene;

/// What is played, each on a pair of guests of its own, at the same time: most of
/// it is waiting.
const PLAYS: [&[Act]; 2] = [
    &[
        Act {
            turns: &[],
            cases: well::CASES,
        },
        Act {
            turns: &[Turn::Freeze, Turn::Thaw],
            cases: frozen::CASES,
        },
    ],
    &[
        Act {
            turns: &[Turn::Kill, Turn::Restart, Turn::Plug],
            cases: restarted::CASES,
        },
        Act {
            turns: &[Turn::Kill, Turn::Nothing],
            cases: dead::CASES,
        },
    ],
];

/// A test: its name and what it does on each device.
struct Case {
    name: &'static str,
    on: &'static [Soft],
    story: for<'s> fn(Scene<'s>) -> act::Story<'s>,
}

/// Lists a module's tests by their functions' names.
macro_rules! cases {
    ($($on:ident: $($name:ident),+ $(,)?;)+) => {
        /// The tests of this module.
        pub(super) const CASES: &[super::Case] = &[
            $($(super::Case {
                name: concat!("wire::", stringify!($name)),
                on: super::soft::$on,
                story: |scene| Box::pin($name(scene)),
            }),+),+
        ];
    };
}
use cases;

/// Plays every test whose name has the filter in it, on every kernel at once.
pub(crate) fn run(workspace: &Workspace, guests: &[Guest], filter: &str, totals: &mut Totals) {
    let program = workspace.programs().join("rdmacm-wire");
    let (tell, results) = channel();
    thread::scope(|scope| {
        for guest in guests {
            eprintln!("two guests on a wire, on the {} ...", guest.kernel);
            for acts in PLAYS {
                let (tell, program) = (tell.clone(), &program);
                scope.spawn(move || {
                    let name = |soft, case: &str| format!("{}/{soft}/{case}", guest.kernel.name);
                    let chosen = |soft, case: &Case| name(soft, case.name).contains(filter);
                    act::play(guest, program, acts, &chosen, &mut |soft, case, result| {
                        // Whoever hears it outlives every play.
                        let _ = tell.send((name(soft, case), result));
                    });
                });
            }
        }
        drop(tell);
        for (name, result) in results {
            totals.step(&name, result);
        }
    });
}
