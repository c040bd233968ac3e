//! Playing stories: all those of an act at once, turn by turn.

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::Case;
use super::pair::Pair;
use super::soft::Soft;
use super::stage::{Scene, Stage};
use crate::guest::Guest;

/// Stories that are told at the same time, because most of each is waiting.
pub(super) struct Act {
    /// What happens to the far guest, each when every story waits for it.
    pub(super) turns: &'static [Turn],
    pub(super) cases: &'static [Case],
}

/// What happens to the far guest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// It stands still.
    Freeze,
    /// It goes on.
    Thaw,
    /// It dies.
    Kill,
    /// Another one comes up, off the wires.
    Restart,
    /// It is plugged into the wires.
    Plug,
    /// Nothing, but that the others' turn has come and gone.
    Nothing,
}

/// One test, on its way.
pub(super) type Story<'s> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 's>>;

/// Says on which devices to play a test.
type Chosen<'a> = &'a dyn Fn(&'static Case) -> Vec<Soft>;
/// Takes each result as it comes, and how long it took.
type Tell<'a> = &'a mut dyn FnMut(Soft, &str, anyhow::Result<()>, Duration);

/// A test that has no result yet.
struct Open<T> {
    soft: Soft,
    case: &'static Case,
    story: T,
}

/// Boots a pair and plays the chosen tests of every act on it. Each has a
/// result, whatever happens.
pub(super) fn play(
    guest: &Guest,
    program: &Path,
    acts: &[Act],
    chosen: Chosen<'_>,
    tell: Tell<'_>,
) {
    let mut acts: Vec<_> = acts.iter().map(|act| (act, act.open(chosen))).collect();
    acts.retain(|(_, open)| !open.is_empty());
    if acts.is_empty() {
        return;
    }
    let began = Instant::now();
    let mut stage = Pair::start(guest, program).map(Stage::new);
    for (act, open) in acts {
        match stage {
            Ok(on) => stage = perform(&on, act.turns, open, tell).map(|()| on),
            Err(ref trouble) => give_up(open, trouble, began, tell),
        }
    }
    if let Ok(stage) = stage {
        if let Err(error) = stage.end() {
            tell(Soft::Rxe, "wire/end", Err(error), began.elapsed());
        }
    }
}

impl Act {
    fn open(&self, chosen: Chosen<'_>) -> Vec<Open<()>> {
        let cases = self.cases.iter();
        let all = cases.flat_map(|case| chosen(case).into_iter().map(move |soft| (soft, case)));
        all.map(|(soft, case)| Open {
            soft,
            case,
            story: (),
        })
        .collect()
    }
}

/// Trouble with a guest is the result of whatever has no other.
fn give_up<T>(open: Vec<Open<T>>, trouble: &anyhow::Error, began: Instant, tell: Tell<'_>) {
    for Open { soft, case, .. } in open {
        let trouble = Err(anyhow!("{trouble:#}"));
        tell(soft, case.name, trouble, began.elapsed());
    }
}

/// Plays an act to its end.
fn perform(
    stage: &Stage,
    turns: &[Turn],
    open: Vec<Open<()>>,
    tell: Tell<'_>,
) -> anyhow::Result<()> {
    stage.begin();
    let began = Instant::now();
    let told = |Open { soft, case, .. }: Open<()>| Open {
        soft,
        case,
        story: (case.story)(Scene { stage, soft }),
    };
    let mut open: Vec<_> = open.into_iter().map(told).collect();
    let mut turns = turns.iter();
    loop {
        go_on(&mut open, began, tell);
        let next = if open.len() > stage.waiting() {
            stage.listen()
        } else if let Some(turn) = turns.next() {
            stage.turn(*turn)
        } else if open.is_empty() {
            return Ok(());
        } else {
            Err(anyhow!("a story waits for a turn that its act has not"))
        };
        if let Err(trouble) = next {
            give_up(open, &trouble, began, tell);
            return Err(trouble);
        }
    }
}

/// Each story goes as far as it can.
fn go_on(open: &mut Vec<Open<Story<'_>>>, began: Instant, tell: Tell<'_>) {
    let mut context = Context::from_waker(Waker::noop());
    open.retain_mut(|one| match one.story.as_mut().poll(&mut context) {
        Poll::Pending => true,
        Poll::Ready(result) => {
            tell(one.soft, one.case.name, result, began.elapsed());
            false
        }
    });
}
