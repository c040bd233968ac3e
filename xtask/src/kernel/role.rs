//! How the user chooses a kernel: by role or by the path of an image.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The kernels that `xtask` prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The kernel of the host's Debian release.
    Stock,
    /// The newest kernel source in Debian's backports.
    New,
}

impl Role {
    /// Every role.
    pub(crate) const ALL: [Self; 2] = [Self::Stock, Self::New];

    /// The name on the command line and in the cache.
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

/// The user's choice of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A kernel that `xtask` prepares.
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
    fn text_that_is_not_a_role_is_a_path() {
        assert_eq!("stock".parse(), Ok(Choice::Role(Role::Stock)));
        assert_eq!("new".parse(), Ok(Choice::Role(Role::New)));
        assert_eq!("./new".parse(), Ok(Choice::Image("./new".into())));
    }
}
