//! What a command's words mean.

use std::net::IpAddr;
use std::time::Duration;

use rdmacm_core::CmAddr;

/// A command's words; the first is its name.
pub(super) struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Self(line.split_whitespace().collect())
    }

    pub(super) fn get(&self, place: usize) -> Option<&'a str> {
        self.0.get(place).copied()
    }

    pub(super) fn at(&self, place: usize) -> &'a str {
        self.0[place]
    }

    /// What follows `key=` in one of them.
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

    /// A count or a flag; `otherwise` where nothing is said.
    pub(super) fn byte(&self, key: &str, otherwise: u8) -> u8 {
        let byte = |value: u32| u8::try_from(value).unwrap();
        self.number(key).map_or(otherwise, byte)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.byte(key, 0) != 0
    }

    /// Private data; none where nothing is said.
    pub(super) fn data(&self) -> Vec<u8> {
        let digits = self.value("data").unwrap_or_default();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    pub(super) fn address(&self, place: usize) -> CmAddr {
        let port = u16::try_from(number(self.at(place + 1))).unwrap();
        CmAddr::from((ip(self.at(place)), port))
    }

    pub(super) fn milliseconds(&self, place: usize) -> Duration {
        Duration::from_millis(number(self.at(place)).into())
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
