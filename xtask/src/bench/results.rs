//! All results of a run, by workload and library.

use std::collections::BTreeMap;

use rdmacm_init::bench::{Function, Group, Measured, Record, Subject, Value};

use crate::bench::statistics::Quartiles;

/// This library's name among the libraries.
pub(crate) const OWN: &str = "rdmacm";
/// The name of bare writes.
pub(crate) const BARE: &str = "bare";
/// The name of TCP.
pub(crate) const TCP: &str = "tcp";

/// The results of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// In the order in which they were first measured.
    pub(crate) rows: Vec<Row>,
    /// The libraries, in the order in which they were first measured.
    pub(crate) libraries: Vec<String>,
    pub(crate) failures: Vec<String>,
}

/// A workload on a device.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) subject: Subject,
    numbers: BTreeMap<String, Numbers>,
}

/// What was measured of one library, for one operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// Nanoseconds in each round.
    pub(crate) rounds: BTreeMap<u32, f64>,
    pub(crate) instructions: Option<f64>,
    /// The functions that they are in, those with the most first.
    pub(crate) functions: Vec<(String, f64)>,
    pub(crate) calls: Option<f64>,
    pub(crate) reads_of_nothing: Option<f64>,
    pub(crate) allocations: Option<f64>,
    /// Bytes on the heap that an operation leaves.
    pub(crate) live_bytes: Option<f64>,
    /// How much more of the process was in memory afterwards.
    pub(crate) resident_bytes: Option<f64>,
}

impl Results {
    /// Sorts results.
    pub(crate) fn new(records: Vec<Record>) -> Self {
        let mut results = Self::default();
        for record in records {
            results.add(record);
        }
        // Bare writes first, TCP and this library last.
        let order = |name: &String| (name != BARE, name == OWN, name == TCP);
        results.libraries.sort_by_key(order);
        results
    }

    fn add(&mut self, record: Record) {
        let Record {
            library,
            subject,
            value,
        } = record;
        if let Value::Failed { error } = &value {
            let name = subject.as_ref().map(Subject::name).unwrap_or_default();
            return self.failures.push(format!("{library} {name}: {error}"));
        }
        let Some(subject) = subject else { return };
        if !self.libraries.contains(&library) {
            self.libraries.push(library.clone());
        }
        let row = self.row(subject);
        row.numbers.entry(library).or_default().add(value);
    }

    /// The row of a workload on a device.
    fn row(&mut self, subject: Subject) -> &mut Row {
        let known = self.rows.iter().position(|row| row.subject == subject);
        let index = known.unwrap_or(self.rows.len());
        if known.is_none() {
            let numbers = BTreeMap::new();
            self.rows.push(Row { subject, numbers });
        }
        &mut self.rows[index]
    }

    /// The groups, in the order of their first rows.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for row in &self.rows {
            if !groups.contains(&row.subject.group) {
                groups.push(row.subject.group);
            }
        }
        groups
    }

    /// What this library's times are divided by: those of the C library's releases, and of TCP.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &String> {
        let is_compared = |name: &&String| ![OWN, BARE].contains(&name.as_str());
        self.libraries.iter().filter(is_compared)
    }
}

impl Row {
    /// The numbers of a library.
    pub(crate) fn of(&self, library: &str) -> Option<&Numbers> {
        self.numbers.get(library)
    }

    /// How much more of a library's process was in memory afterwards. If nothing was kept, it is
    /// that of a page or none.
    pub(crate) fn resident_bytes(&self, library: &str) -> Option<f64> {
        let numbers = self.of(library).filter(|_| self.subject.is_kept)?;
        numbers.resident_bytes
    }

    /// How fast a library transfers, in the median.
    pub(crate) fn megabytes_in_a_second(&self, library: &str) -> Option<f64> {
        let bytes = f64::from(self.subject.bytes?);
        let nanoseconds = self.of(library)?.time()?;
        (nanoseconds > 0.0).then(|| bytes * 1_000.0 / nanoseconds)
    }

    /// What a library needs to transfer 1,024 bytes.
    pub(crate) fn instructions_for_a_kib(&self, library: &str) -> Option<f64> {
        let bytes = f64::from(self.subject.bytes?);
        Some(self.of(library)?.instructions? * 1_024.0 / bytes)
    }

    /// This library's time divided by another's, of each round.
    pub(crate) fn ratio(&self, library: &str) -> Option<Quartiles> {
        let (own, other) = (self.of(OWN)?, self.of(library)?);
        let pairs = own.rounds.iter().filter_map(|(round, time)| {
            let other = *other.rounds.get(round)?;
            (other > 0.0).then_some(time / other)
        });
        Quartiles::of(pairs)
    }
}

impl Numbers {
    fn add(&mut self, value: Value) {
        match value {
            Value::Time { round, measured } => {
                let Measured {
                    operations,
                    nanoseconds,
                    allocations,
                    live_bytes,
                    resident_bytes,
                } = measured;
                self.rounds.insert(round, each(nanoseconds, operations));
                self.allocations = Some(each(allocations, operations));
                self.live_bytes = Some(each_signed(live_bytes, operations));
                self.resident_bytes = Some(each_signed(resident_bytes, operations));
            }
            Value::ProcessTime { round, nanoseconds } => {
                self.rounds.insert(round, each(nanoseconds, 1));
            }
            Value::Instructions {
                operations,
                instructions,
            } => self.instructions = Some(each(instructions, operations)),
            Value::Functions {
                operations,
                functions,
            } => {
                let each = |Function { name, instructions }| (name, each(instructions, operations));
                self.functions = functions.into_iter().map(each).collect();
            }
            Value::Calls {
                operations,
                calls,
                by_name,
                allocations,
            } => {
                let nothing = by_name.iter().filter(|(name, _)| name.ends_with(" EAGAIN"));
                let nothing = nothing.map(|(_, times)| times).sum();
                self.calls = Some(each(calls, operations));
                self.reads_of_nothing = Some(each(nothing, operations));
                self.allocations = Some(each(allocations, operations));
            }
            Value::Failed { .. } => {}
        }
    }

    /// The median of the times, in nanoseconds.
    pub(crate) fn time(&self) -> Option<f64> {
        Some(Quartiles::of(self.rounds.values().copied())?.median)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number to look at")]
fn each(sum: u64, operations: u64) -> f64 {
    sum as f64 / operations.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a number to look at")]
fn each_signed(sum: i64, operations: u64) -> f64 {
    sum as f64 / operations.max(1) as f64
}

#[cfg(test)]
mod tests {
    use rdmacm_init::bench::StableCounts;

    use super::*;

    pub(crate) fn time(library: &str, round: u32, nanoseconds: u64) -> Record {
        let subject = Subject {
            group: Group::Ids,
            device: "rxe".to_owned(),
            workload: "id".to_owned(),
            counts: StableCounts::Exact,
            bytes: None,
            is_kept: false,
        };
        let measured = Measured {
            operations: 2,
            nanoseconds,
            allocations: 4,
            live_bytes: -6,
            resident_bytes: 8192,
        };
        Record {
            library: library.to_owned(),
            subject: Some(subject),
            value: Value::Time { round, measured },
        }
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let mut records = Vec::new();
        for (round, (own, c)) in [(10, 20), (300, 300), (50, 25)].into_iter().enumerate() {
            let round = u32::try_from(round).unwrap();
            records.extend([time(OWN, round, own), time("44", round, c)]);
        }
        records.push(time("44", 3, 1));
        let results = Results::new(records);
        assert_eq!(results.libraries, ["44", OWN]);
        let [row] = &results.rows[..] else {
            panic!("{results:?}")
        };
        assert_eq!(row.ratio("44").unwrap().to_string(), "1.00 (0.75–1.50)");
        assert_eq!(row.ratio("45"), None);
        let own = row.of(OWN).unwrap();
        assert_eq!(
            (own.time(), own.allocations, own.live_bytes),
            (Some(25.0), Some(2.0), Some(-3.0))
        );
    }

    #[test]
    fn a_failure_is_named() {
        let mut failed = time("44", 0, 0);
        failed.value = Value::Failed {
            error: "no".to_owned(),
        };
        let results = Results::new(vec![failed]);
        assert_eq!(results.failures, ["44 rxe/id: no"]);
    }
}
