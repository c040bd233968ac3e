//! Which kernel is meant: by what it is for, or by a file.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The kernels that this project prepares itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one that the host's Debian release ships.
    Stock,
    /// The newest one that Debian's backports offer as source.
    New,
}

impl Role {
    /// Every role.
    pub(crate) const ALL: [Self; 2] = [Self::Stock, Self::New];

    /// The word on the command line and in the cache.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::New => "new",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A kernel as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One that this project prepares.
    Role(Role),
    /// The user's own image.
    Image(PathBuf),
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => role.fmt(formatter),
            Self::Image(path) => path.display().fmt(formatter),
        }
    }
}

impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(
            match Role::ALL.into_iter().find(|role| role.as_str() == text) {
                Some(role) => Self::Role(role),
                None => Self::Image(text.into()),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_role_is_a_path() {
        assert_eq!("stock".parse(), Ok(Choice::Role(Role::Stock)));
        assert_eq!("new".parse(), Ok(Choice::Role(Role::New)));
        assert_eq!("./new".parse(), Ok(Choice::Image("./new".into())));
    }
}
