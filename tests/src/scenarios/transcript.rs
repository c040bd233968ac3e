//! The answers of two actors.

use std::fmt;

use super::library::Library;
use super::scenario::{Scenario, Step};

/// Commands and answers, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    libraries: [Library; 2],
    answers: Vec<Answer>,
}

/// One actor's answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The actor: 0 for `a`, 1 for `b`.
    pub side: usize,
    /// As the script has it.
    pub command: String,
    /// With the names of values that differ between runs.
    pub lines: Vec<String>,
}

impl Transcript {
    /// Without answers yet. The libraries are those of `a` and `b`.
    pub(super) fn new(libraries: [Library; 2]) -> Self {
        let answers = Vec::new();
        Self { libraries, answers }
    }

    pub(super) fn push(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    pub(super) fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Checks the facts that the scenario states.
    ///
    /// # Errors
    /// The first fact that does not hold.
    pub fn check_facts(&self, scenario: &Scenario) -> Result<(), String> {
        for (answer, step) in self.answers.iter().zip(steps(scenario)) {
            for fact in &step.facts {
                let holds = |line: &String| match fact.strip_suffix('*') {
                    Some(beginning) => line.starts_with(beginning),
                    None => line == fact,
                };
                if !answer.lines.iter().any(holds) {
                    return Err(format!("{self}{}: not {fact}", answer.command));
                }
            }
        }
        Ok(())
    }

    /// Checks that another transcript has the same answers, except intended differences.
    ///
    /// # Errors
    /// The first answer that differs.
    pub fn compare(&self, other: &Self, scenario: &Scenario) -> Result<(), String> {
        let counts = [self.answers.len(), other.answers.len()];
        if counts[0] != counts[1] {
            return Err(format!(
                "{other}{} answers, expected {}",
                counts[1], counts[0]
            ));
        }
        let pairs = self.answers.iter().zip(&other.answers);
        for ((expected, actual), step) in pairs.zip(steps(scenario)) {
            let mut lines = expected.lines.clone();
            if other.libraries[actual.side] == Library::Ours {
                for difference in &step.differences {
                    let applied = difference.apply(&mut lines);
                    applied.map_err(|error| format!("{other}{actual}: {error}"))?;
                }
            }
            if (expected.to_string(), &lines) != (actual.to_string(), &actual.lines) {
                let lines = lines.join("\n      ");
                return Err(format!(
                    "{other}{actual}: expected {expected}\n      {lines}"
                ));
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
        let [a, b] = self.libraries;
        writeln!(f, "a is {a}, b is {b}")?;
        for answer in &self.answers {
            writeln!(f, "  {answer}")?;
            for line in &answer.lines {
                writeln!(f, "      {line}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ["a", "b"][self.side], self.command)
    }
}
