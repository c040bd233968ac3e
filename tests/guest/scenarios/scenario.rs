//! The contents of a script.

use super::difference::Difference;
use crate::schedule::When;

/// A named list of commands.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(super) name: String,
    pub(super) when: When,
    pub(super) steps: Vec<Step>,
}

/// A command, and what its answer must contain.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(super) process: Process,
    pub(super) command: String,
    /// Lines of the answer; `*` at the end stands for any text.
    pub(super) facts: Vec<String>,
    pub(super) differences: Vec<Difference>,
}

/// The process that executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    A,
    B,
    /// Both: the command is sent to both before either answers.
    Both,
}

impl Process {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        match word {
            "a" => Some(Self::A),
            "b" => Some(Self::B),
            "ab" => Some(Self::Both),
            _ => None,
        }
    }

    pub(super) fn sides(self) -> &'static [usize] {
        match self {
            Self::A => &[0],
            Self::B => &[1],
            Self::Both => &[0, 1],
        }
    }
}
