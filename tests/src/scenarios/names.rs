//! Stable names for values that differ between runs.
//!
//! A number that the kernel or chance has chosen is named by the order in which it first
//! appears, so that the comparison finds out whether two answers have the same number.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::{PLAIN, Site, UNROUTABLE, free_port, free_qp_number};

/// Values of one run and their names.
pub(super) struct Names {
    /// The values of the `$words` in commands.
    words: HashMap<&'static str, String>,
    /// The names of numbers, by meaning and value.
    numbers: HashMap<(&'static str, String), String>,
    counts: HashMap<&'static str, usize>,
}

/// The keys with such values, and the meanings of their numbers.
const MEANINGS: &[(&str, &str)] = &[
    ("src_port", "port"),
    ("dst_port", "port"),
    ("qp_num", "qp"),
    ("dest_qp_num", "qp"),
    ("rq_psn", "psn"),
    ("sq_psn", "psn"),
    ("flow_label", "flow"),
];

/// The queue pair number of multicast.
const MULTICAST_QP: &str = "16777215";

impl Names {
    pub(super) fn new(site: &Site) -> Self {
        let mut names = Self {
            words: HashMap::new(),
            numbers: HashMap::new(),
            counts: HashMap::new(),
        };
        names.words.extend([
            ("$A", site.v4.to_string()),
            ("$A6", site.v6.to_string()),
            ("$PLAIN", PLAIN.to_string()),
            ("$SILENT", site.silent.to_string()),
            ("$UNROUTABLE", UNROUTABLE.to_string()),
            ("$G1", free_group().to_string()),
            ("$G2", free_group().to_string()),
        ]);
        for word in ["$P1", "$P2"] {
            names.add(word, "port", free_port().to_string());
        }
        for word in ["$Q1", "$Q2", "$Q3"] {
            names.add(word, "qp", free_qp_number().to_string());
        }
        names
    }

    /// A number that the test chooses, with the same name in commands and answers.
    fn add(&mut self, word: &'static str, meaning: &'static str, value: String) {
        self.numbers
            .insert((meaning, value.clone()), word.to_owned());
        self.words.insert(word, value);
    }

    /// A command with values instead of `$words`.
    pub(super) fn fill_in(&self, command: &str) -> String {
        let words = command.split(' ').map(|word| {
            let (key, value) = word.split_once('=').unwrap_or(("", word));
            let value = match (self.words.get(value), value.strip_prefix("$BYTES")) {
                (Some(filled), _) => filled.clone(),
                (None, Some(count)) => "5a".repeat(count.parse().unwrap()),
                (None, None) => value.to_owned(),
            };
            if key.is_empty() {
                value
            } else {
                format!("{key}={value}")
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// A line of an answer with names instead of values.
    pub(super) fn name(&mut self, line: &str) -> String {
        let Some((key, value)) = line.split_once('=') else {
            return line.to_owned();
        };
        let meaning = MEANINGS.iter().find(|(known, _)| *known == key);
        match meaning {
            Some((_, meaning)) if value != "0" && value != MULTICAST_QP => {
                format!("{key}={}", self.number(meaning, value))
            }
            _ if key == "dgid" => format!("{key}={}", self.group(value)),
            _ if key == "src" || key == "dst" => format!("{key}={}", self.address(value)),
            _ => line.to_owned(),
        }
    }

    fn number(&mut self, meaning: &'static str, value: &str) -> String {
        let Self {
            numbers, counts, ..
        } = self;
        let name = numbers.entry((meaning, value.to_owned()));
        let name = name.or_insert_with(|| {
            let count = counts.entry(meaning).or_default();
            *count += 1;
            format!("{meaning}{count}")
        });
        name.clone()
    }

    /// One of the device's addresses by its name.
    fn address<'a>(&self, ip: &'a str) -> &'a str {
        let mut names = ["$A", "$A6"].into_iter();
        let found = names.find(|name| self.words[name] == ip);
        found.unwrap_or(ip)
    }

    /// The GID of a multicast group of this run by the group's name.
    fn group(&self, gid: &str) -> String {
        let found = ["$G1", "$G2"].into_iter().find(|name| {
            let address: Ipv4Addr = self.words[name].parse().unwrap();
            format!("{:032x}", u128::from(address.to_ipv6_mapped())) == gid
        });
        found.unwrap_or(gid).to_owned()
    }
}

/// A multicast group that no other test of this process uses.
fn free_group() -> Ipv4Addr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    Ipv4Addr::new(239, 71, high, low)
}
