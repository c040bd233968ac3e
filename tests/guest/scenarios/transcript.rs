//! What two actors said.

use std::fmt;

use libtest_mimic::Failed;

use super::actor::Kind;
use super::scenario::{Scenario, Step};

/// Commands and answers, in order.
pub(super) struct Transcript {
    cast: [Kind; 2],
    answers: Vec<Answer>,
}

/// One actor's answer to one command.
struct Answer {
    side: usize,
    command: String,
    lines: Vec<String>,
}

impl Transcript {
    pub(super) fn of(cast: [Kind; 2]) -> Self {
        Self {
            cast,
            answers: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, side: usize, step: &Step, lines: Vec<String>) {
        let command = step.command.clone();
        self.answers.push(Answer {
            side,
            command,
            lines,
        });
    }

    /// Why it ends before its scenario.
    pub(super) fn broken_off(&self, step: &Step, trouble: &str) -> Failed {
        Failed::from(format!("{self}{}: {trouble}", step.command))
    }

    /// Whether it says what its scenario says it does.
    pub(super) fn check_facts(&self, scenario: &Scenario) -> Result<(), Failed> {
        for (answer, step) in self.answers.iter().zip(steps(scenario)) {
            for fact in &step.facts {
                let holds = |line: &String| match fact.strip_suffix('*') {
                    Some(beginning) => line.starts_with(beginning),
                    None => line == fact,
                };
                if !answer.lines.iter().any(holds) {
                    let trouble = format!("{self}{}: not {fact}", answer.command);
                    return Err(Failed::from(trouble));
                }
            }
        }
        Ok(())
    }

    /// Whether another says the same, but for what is meant to differ.
    pub(super) fn compare(&self, other: &Self, scenario: &Scenario) -> Result<(), Failed> {
        let pairs = self.answers.iter().zip(&other.answers);
        for ((right, said), step) in pairs.zip(steps(scenario)) {
            let mut expected = right.lines.clone();
            if other.cast[said.side] == Kind::Ours {
                for difference in &step.differences {
                    difference.apply(&mut expected);
                }
            }
            if said.lines != expected {
                let expected = expected.join("\n      ");
                let trouble = format!("{other}{}: not\n      {expected}", said.command);
                return Err(Failed::from(trouble));
            }
        }
        Ok(())
    }
}

/// A step for each answer.
fn steps(scenario: &Scenario) -> impl Iterator<Item = &Step> {
    let steps = scenario.steps.iter();
    steps.flat_map(|step| step.who.sides().iter().map(move |_| step))
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.cast;
        writeln!(f, "a is {a}, b is {b}")?;
        for answer in &self.answers {
            let side = ["a", "b"][answer.side];
            writeln!(f, "  {side} {}", answer.command)?;
            for line in &answer.lines {
                writeln!(f, "      {line}")?;
            }
        }
        Ok(())
    }
}
