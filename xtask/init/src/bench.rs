//! The results of the benchmarks, as `tests/bench` prints them for the host: one line of JSON
//! each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A result of a library, or of all its workloads if they failed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The library's name.
    pub library: String,
    /// Of which workload; `None` if all failed together.
    #[serde(flatten)]
    pub subject: Option<Subject>,
    /// What was measured.
    #[serde(flatten)]
    pub value: Value,
}

/// A workload on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The table and the plot that it belongs to.
    pub group: Group,
    /// The device's name.
    pub device: String,
    /// The workload's name.
    pub workload: String,
    /// Its counts that can be compared.
    pub counts: StableCounts,
    /// The bytes that an operation transfers, if that is what it is about.
    pub bytes: Option<u32>,
    /// Whether what the operations make is kept: memory is looked at.
    pub is_kept: bool,
}

impl Subject {
    /// `DEVICE/WORKLOAD`
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.workload)
    }
}

/// Related workloads: one table and one plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Group {
    ColdStart,
    Ids,
    Names,
    Events,
    DataPath,
    Messages,
    Streams,
    Connections,
    Throughput,
    Memory,
    Growth,
}

/// Which counts of a workload are the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StableCounts {
    /// Instructions, calls and allocations.
    Exact,
    /// Calls and allocations: a wait for an event takes instructions if it is not there yet.
    Calls,
    /// Allocations: instructions and calls depend on how long the peer takes.
    Allocations,
    /// None is compared: they depend on the peer, or it takes long to count them.
    Varying,
    /// None, and none is counted: it is only timed.
    Nothing,
}

/// What was measured, of all operations together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Value {
    /// Of one round.
    Time {
        /// The round's number.
        round: u32,
        /// What the workload has measured.
        #[serde(flatten)]
        measured: Measured,
    },
    /// Of a whole process, in one round.
    ProcessTime {
        /// The round's number.
        round: u32,
        /// From its start to its end.
        nanoseconds: u64,
    },
    /// Instructions in user space.
    Instructions {
        /// The number of operations.
        operations: u64,
        /// Their sum.
        instructions: u64,
    },
    /// The functions that these instructions are in.
    Functions {
        /// The number of operations.
        operations: u64,
        /// Those with the most instructions first.
        functions: Vec<Function>,
    },
    /// System calls, and allocations of the same process.
    Calls {
        /// The number of operations.
        operations: u64,
        /// The sum of all calls.
        calls: u64,
        /// Calls by name; reads that found nothing are `NAME EAGAIN`.
        by_name: BTreeMap<String, u64>,
        /// The number of allocations.
        allocations: u64,
    },
    /// Nothing.
    Failed {
        /// Why.
        error: String,
    },
}

/// What a workload has measured of itself, all operations together. The C program prints
/// the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The number of operations.
    pub operations: u64,
    /// Their time.
    pub nanoseconds: u64,
    /// The number of allocations.
    pub allocations: u64,
    /// Bytes on the heap that were kept for all operations.
    pub live_bytes: i64,
    /// How much more of the process was in memory afterwards, in bytes.
    pub resident_bytes: i64,
}

/// What a function has executed itself, without those that it has called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name in the program's symbols.
    pub name: String,
    /// The number of instructions.
    pub instructions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject {
            group: Group::ColdStart,
            device: "rxe".to_owned(),
            workload: "id".to_owned(),
            counts: StableCounts::Exact,
            bytes: None,
            is_kept: false,
        }
    }

    #[test]
    fn a_line_is_parsed_as_it_was_printed() {
        let measured = Measured {
            operations: 2,
            live_bytes: -6,
            ..Measured::default()
        };
        let functions = vec![Function {
            name: "a::b".to_owned(),
            instructions: 190,
        }];
        let error = "no".to_owned();
        for (subject, value) in [
            (Some(subject()), Value::Time { round: 1, measured }),
            (
                Some(subject()),
                Value::ProcessTime {
                    round: 1,
                    nanoseconds: 3,
                },
            ),
            (
                Some(subject()),
                Value::Instructions {
                    operations: 2,
                    instructions: 4,
                },
            ),
            (
                Some(subject()),
                Value::Functions {
                    operations: 2,
                    functions,
                },
            ),
            (
                Some(subject()),
                Value::Calls {
                    operations: 2,
                    calls: 3,
                    by_name: [("write".to_owned(), 3)].into(),
                    allocations: 1,
                },
            ),
            (None, Value::Failed { error }),
        ] {
            let record = Record {
                library: "44".to_owned(),
                subject,
                value,
            };
            let line = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }
}
