//! Globally unique identifiers of nodes.

use std::fmt;
use std::str::FromStr;

use crate::address::ParseAddrError;

/// A node's globally unique identifier, host order. Not unique among soft
/// devices: rxe and siw on one network interface share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    /// Four groups of four digits, as sysfs writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |shift: u32| self.0 >> shift & 0xffff;
        let (first, second, third, last) = (group(48), group(32), group(16), group(0));
        write!(f, "{first:04x}:{second:04x}:{third:04x}:{last:04x}")
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

impl FromStr for Guid {
    type Err = ParseAddrError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, ParseAddrError> {
        read(text).ok_or(ParseAddrError::GUID)
    }
}

fn read(text: &str) -> Option<Guid> {
    let mut groups = text.split(':').map(group);
    let mut next = || groups.next().flatten();
    let four = [next()?, next()?, next()?, next()?];
    let number = four
        .into_iter()
        .fold(0, |number, group| number << 16 | group);
    groups.next().is_none().then_some(Guid(number))
}

/// Four hexadecimal digits.
fn group(text: &str) -> Option<u64> {
    let is_group = text.len() == 4 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_group
        .then(|| u64::from_str_radix(text, 16).ok())
        .flatten()
}

impl From<u64> for Guid {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_read_as_it_is_written() {
        for guid in [0, 0x0011_22ff_fe33_4455, u64::MAX].map(Guid::from) {
            assert_eq!(guid.to_string().parse(), Ok(guid));
        }
        let upper = "0C42:A103:00AA:BBCC".parse();
        assert_eq!(upper, Ok(Guid(0x0c42_a103_00aa_bbcc)));
    }

    #[test]
    fn other_text_is_no_guid() {
        for text in [
            "",
            "0011:22ff:fe33",
            "0011:22ff:fe33:4455:6677",
            "0011:22ff:fe33:445",
            "0011:22ff:fe33:44555",
            "0011:22ff:fe33:+455",
            "001122fffe334455",
            " 0011:22ff:fe33:4455",
        ] {
            assert_eq!(text.parse::<Guid>(), Err(ParseAddrError::GUID), "{text}");
        }
        let words = ParseAddrError::GUID.to_string();
        assert_eq!(words, "not a GUID, as 0011:22ff:fe33:4455");
    }

    #[test]
    fn a_guid_reads_as_sysfs_writes_it() {
        let guid = Guid(0x0011_22ff_fe33_4455);
        assert_eq!(guid.to_string(), "0011:22ff:fe33:4455");
    }
}
