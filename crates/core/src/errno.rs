//! Names of error numbers.

use std::fmt;

use nix::errno::Errno;

/// `ENOTSUPP`, a kernel-internal number that some commands return (IPv6 multicast on
/// RoCE v2) and that C libraries do not name.
pub(crate) const ENOTSUPP: i32 = 524;

/// An error number, positive, displayed by name: `ENODEV`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub i32);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, Errno::from_raw(self.0)) {
            (ENOTSUPP, _) => f.write_str("ENOTSUPP"),
            (number, Errno::UnknownErrno) => write!(f, "errno {number}"),
            (_, errno) => write!(f, "{errno:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_name() {
        assert_eq!(Name(libc::ENODEV).to_string(), "ENODEV");
        assert_eq!(Name(524).to_string(), "ENOTSUPP");
        assert_eq!(Name(4321).to_string(), "errno 4321");
    }
}
