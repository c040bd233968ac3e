//! The libraries that actors use.

use std::fmt;

/// The library that an actor uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// librdmacm.
    C,
    /// This library.
    Ours,
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Ours => "ours",
        })
    }
}
