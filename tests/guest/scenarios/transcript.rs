//! The answers of two actors.

use std::fmt;

use libtest_mimic::Failed;

use super::actor::Kind;
use super::scenario::{Scenario, Step};

/// Commands and answers, in order.
pub(super) struct Transcript {
    pair: [Kind; 2],
    answers: Vec<Answer>,
}

/// One actor's answer to one command.
struct Answer {
    side: usize,
    command: String,
    lines: Vec<String>,
}

impl Transcript {
    pub(super) fn new(pair: [Kind; 2]) -> Self {
        Self {
            pair,
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

    /// An error of a scenario that ended early.
    pub(super) fn interrupted(&self, step: &Step, reason: &str) -> Failed {
        Failed::from(format!("{self}{}: {reason}", step.command))
    }

    /// Checks the facts that the scenario states.
    pub(super) fn check_facts(&self, scenario: &Scenario) -> Result<(), Failed> {
        for (answer, step) in self.answers.iter().zip(steps(scenario)) {
            for fact in &step.facts {
                let holds = |line: &String| match fact.strip_suffix('*') {
                    Some(beginning) => line.starts_with(beginning),
                    None => line == fact,
                };
                if !answer.lines.iter().any(holds) {
                    let reason = format!("{self}{}: not {fact}", answer.command);
                    return Err(Failed::from(reason));
                }
            }
        }
        Ok(())
    }

    /// Checks that another transcript has the same answers, except intended differences.
    pub(super) fn compare(&self, other: &Self, scenario: &Scenario) -> Result<(), Failed> {
        let pairs = self.answers.iter().zip(&other.answers);
        for ((expected, actual), step) in pairs.zip(steps(scenario)) {
            let mut expected = expected.lines.clone();
            if other.pair[actual.side] == Kind::Ours {
                for difference in &step.differences {
                    difference.apply(&mut expected);
                }
            }
            if actual.lines != expected {
                let expected = expected.join("\n      ");
                let reason = format!("{other}{}: not\n      {expected}", actual.command);
                return Err(Failed::from(reason));
            }
        }
        Ok(())
    }
}

/// A step for each answer.
fn steps(scenario: &Scenario) -> impl Iterator<Item = &Step> {
    let steps = scenario.steps.iter();
    steps.flat_map(|step| step.process.sides().iter().map(move |_| step))
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.pair;
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
