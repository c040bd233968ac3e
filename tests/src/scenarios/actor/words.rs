//! The words of a command.

use std::net::IpAddr;
use std::time::Duration;

use rdmacm_core::CmAddr;

/// The words of a command; the first is its name.
pub(super) struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split_whitespace().collect())
    }

    pub(super) fn get(&self, index: usize) -> Option<&'a str> {
        self.0.get(index).copied()
    }

    pub(super) fn at(&self, index: usize) -> &'a str {
        self.0[index]
    }

    /// The value of a word `key=value`.
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.0.iter().filter_map(|word| word.split_once('='));
        pairs
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    }

    /// The same as a number.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.value(key).map(number)
    }

    /// A count or a flag; `default` if it is not given.
    pub(super) fn byte(&self, key: &str, default: u8) -> u8 {
        let byte = |value: u32| u8::try_from(value).unwrap();
        self.number(key).map_or(default, byte)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.byte(key, 0) != 0
    }

    /// Private data; none if it is not given.
    pub(super) fn data(&self) -> Vec<u8> {
        let digits = self.value("data").unwrap_or_default();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    pub(super) fn address(&self, index: usize) -> CmAddr {
        let port = u16::try_from(number(self.at(index + 1))).unwrap();
        CmAddr::from((ip(self.at(index)), port))
    }

    pub(super) fn milliseconds(&self, index: usize) -> Duration {
        Duration::from_millis(number(self.at(index)).into())
    }
}

pub(super) fn ip(word: &str) -> IpAddr {
    word.parse().unwrap()
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn number(word: &str) -> u32 {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => word.parse().unwrap(),
    }
}
