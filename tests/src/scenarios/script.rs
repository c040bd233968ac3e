//! Scenarios as text: `tests/scenarios`.
//!
//! ```text
//! define NAME          steps that scenarios share
//! scenario NAME [rxe|siw] [waiting]
//!                      on this device only; mostly waiting for a timeout
//!   do NAME            the steps of a definition
//!   a COMMAND          for actor a; b for b, ab for both at once
//!   rxe a COMMAND      only on this device, with what follows until the next
//!                      command; so may any of these lines begin
//!   = LINE LINE ...    lines of the answer to the command above
//!   ~ C | OURS | WHY   this library's line OURS instead of C's, and the reason
//!   # ...              a comment
//! ```

use std::collections::HashMap;

use crate::Soft;

use super::difference::Difference;
use super::scenario::{Process, Scenario, Step};

const SCRIPTS: &[&str] = &[
    include_str!("../../scenarios/shared.txt"),
    include_str!("../../scenarios/addresses.txt"),
    include_str!("../../scenarios/connections.txt"),
    include_str!("../../scenarios/refusals.txt"),
    include_str!("../../scenarios/departures.txt"),
    include_str!("../../scenarios/options.txt"),
    include_str!("../../scenarios/migration.txt"),
    include_str!("../../scenarios/datagrams.txt"),
    include_str!("../../scenarios/multicast.txt"),
];

/// The scenarios for a device.
#[must_use]
pub fn scenarios(soft: Soft) -> Vec<Scenario> {
    let mut reader = Reader {
        soft,
        scenarios: Vec::new(),
        definitions: HashMap::new(),
        section: Section::None,
        skipping: false,
    };
    for line in SCRIPTS.iter().flat_map(|script| script.lines()) {
        let read = reader.read(line.trim());
        assert!(read.is_some(), "not a line of a scenario: {line}");
    }
    reader.scenarios
}

/// Whether a line is about the answer of the command above it.
fn is_about_answer(first_word: &str) -> bool {
    matches!(first_word, "=" | "~")
}

struct Reader {
    soft: Soft,
    scenarios: Vec<Scenario>,
    definitions: HashMap<String, Vec<Step>>,
    section: Section,
    /// Whether the last command is for another device.
    skipping: bool,
}

/// The part of the script that the next step is in.
enum Section {
    None,
    Definition(String),
    Scenario,
    /// In a scenario of another device.
    OtherDevice(Vec<Step>),
}

impl Reader {
    /// Reads a line; `None` if it is invalid.
    fn read(&mut self, line: &str) -> Option<()> {
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        let (first, rest) = line.split_once(' ')?;
        match first {
            "rxe" | "siw" if self.is_for(first) => self.read(rest)?,
            "rxe" | "siw" => self.skipping |= !is_about_answer(rest.split(' ').next()?),
            _ if self.skipping && is_about_answer(first) => {}
            "define" => {
                self.definitions.insert(rest.to_owned(), Vec::new());
                self.section = Section::Definition(rest.to_owned());
            }
            "scenario" => self.begin(rest)?,
            "do" => {
                self.skipping = false;
                let steps = self.definitions.get(rest)?.clone();
                self.steps()?.extend(steps);
            }
            "=" => {
                let facts = rest.split(' ').map(str::to_owned);
                self.steps()?.last_mut()?.facts.extend(facts);
            }
            "~" => {
                let difference = Difference::parse(rest)?;
                self.steps()?.last_mut()?.differences.push(difference);
            }
            _ => {
                self.skipping = false;
                let process = Process::from_word(first)?;
                self.steps()?.push(Step {
                    process,
                    command: rest.to_owned(),
                    facts: Vec::new(),
                    differences: Vec::new(),
                });
            }
        }
        Some(())
    }

    fn is_for(&self, device: &str) -> bool {
        device
            == match self.soft {
                Soft::Rxe => "rxe",
                Soft::Siw => "siw",
            }
    }

    fn begin(&mut self, words: &str) -> Option<()> {
        let mut words = words.split(' ');
        let name = words.next()?;
        let mut is_waiting = false;
        for word in words {
            match word {
                "waiting" => is_waiting = true,
                device if self.is_for(device) => {}
                _ => {
                    self.section = Section::OtherDevice(Vec::new());
                    return Some(());
                }
            }
        }
        self.section = Section::Scenario;
        self.scenarios.push(Scenario {
            name: name.to_owned(),
            is_waiting,
            steps: Vec::new(),
        });
        Some(())
    }

    fn steps(&mut self) -> Option<&mut Vec<Step>> {
        match &mut self.section {
            Section::None => None,
            Section::Definition(name) => self.definitions.get_mut(name),
            Section::Scenario => Some(&mut self.scenarios.last_mut()?.steps),
            Section::OtherDevice(steps) => Some(steps),
        }
    }
}
