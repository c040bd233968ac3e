//! What a script says.

use super::difference::Difference;
use crate::schedule::When;

/// A named list of commands.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(super) name: String,
    pub(super) when: When,
    pub(super) steps: Vec<Step>,
}

/// A command, and what is known of its answer.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(super) who: Who,
    pub(super) command: String,
    /// Lines of the answer; one that ends in `*` only begins so.
    pub(super) facts: Vec<String>,
    pub(super) differences: Vec<Difference>,
}

/// Whose command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    A,
    B,
    /// Both at once: neither waits for the other's answer.
    Both,
}

impl Who {
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
