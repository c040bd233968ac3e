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

use crate::guest::Guest;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

use self::act::{Act, Turn};
use self::soft::Soft;
use self::stage::Scene;

/// What is played, in this order, on one pair of guests.
const ACTS: [Act; 4] = [
    Act {
        turns: &[],
        cases: well::CASES,
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
        turns: &[Turn::Kill],
        cases: dead::CASES,
    },
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

/// Plays every test on one kernel whose name has the filter in it.
pub(crate) fn run(workspace: &Workspace, guest: &Guest, filter: &str, totals: &mut Totals) {
    let program = workspace.programs().join("rdmacm-wire");
    let name = guest.kernel.name;
    eprintln!("two guests on a wire, on the {name} kernel ...");
    let chosen = |soft: Soft, case: &Case| format!("{name}/{soft}/{}", case.name).contains(filter);
    act::play(
        guest,
        &program,
        &ACTS,
        &chosen,
        &mut |soft, case, result| {
            totals.step(&format!("{name}/{soft}/{case}"), result);
        },
    );
}
