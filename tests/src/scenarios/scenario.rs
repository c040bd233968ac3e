//! The contents of a script.

use super::difference::Difference;

/// A named list of commands.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Unique for a device.
    pub name: String,
    /// Whether it mostly waits for a timeout.
    pub is_waiting: bool,
    /// In order.
    pub steps: Vec<Step>,
}

/// A command, and what its answer must contain.
#[derive(Clone, Debug)]
pub struct Step {
    /// Who executes it.
    pub process: Process,
    /// With `$words` for values of the run.
    pub command: String,
    /// Lines of the answer; `*` at the end stands for any text.
    pub facts: Vec<String>,
    /// Where this library answers otherwise than librdmacm.
    pub differences: Vec<Difference>,
}

/// The process that executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The first.
    A,
    /// The second.
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

    /// Their indices.
    #[must_use]
    pub fn sides(self) -> &'static [usize] {
        match self {
            Self::A => &[0],
            Self::B => &[1],
            Self::Both => &[0, 1],
        }
    }
}
