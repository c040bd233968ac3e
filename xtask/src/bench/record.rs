//! The results as the driver prints them, one line of JSON each.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A result of a library, or of all its workloads if they failed together.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) library: String,
    #[serde(flatten)]
    pub(crate) subject: Option<Subject>,
    #[serde(flatten)]
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Subject {
    pub(crate) group: String,
    pub(crate) device: String,
    pub(crate) workload: String,
    pub(crate) counts: Repeat,
    /// The bytes that an operation transfers, if that is what it is about.
    pub(crate) bytes: Option<u32>,
    /// Whether what the operations make is kept.
    pub(crate) is_kept: bool,
}

/// Which counts are the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Repeat {
    /// Instructions, calls and allocations.
    Exact,
    /// Calls and allocations.
    Calls,
    /// Allocations.
    Allocations,
    /// None.
    Varying,
    /// None, and none is counted.
    Nothing,
}

impl Subject {
    /// `DEVICE/WORKLOAD`
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.device, self.workload)
    }
}

/// What was measured, of all operations together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Value {
    Time {
        round: u32,
        operations: u64,
        nanoseconds: u64,
        allocations: u64,
        live_bytes: i64,
        resident_bytes: i64,
    },
    ProcessTime {
        round: u32,
        nanoseconds: u64,
    },
    Instructions {
        operations: u64,
        instructions: u64,
    },
    Functions {
        operations: u64,
        functions: Vec<Function>,
    },
    Calls {
        operations: u64,
        calls: u64,
        by_name: BTreeMap<String, u64>,
        allocations: u64,
    },
    Failed {
        error: String,
    },
}

/// What a function has executed itself, without those that it has called.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) instructions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_driver_are_parsed() {
        let line = r#"{"library":"44","group":"ids","device":"rxe","workload":"id","counts":"exact",
            "bytes":null,"is_kept":false,"kind":"calls","operations":2,"calls":3,"by_name":{"write":3},"allocations":1}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(record.subject.unwrap().name(), "rxe/id");
        let Value::Calls {
            calls: 3, by_name, ..
        } = record.value
        else {
            panic!("{:?}", record.value);
        };
        assert_eq!(by_name["write"], 3);
        let line = r#"{"library":"44","kind":"failed","error":"no"}"#;
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(record.subject, None);
        assert!(matches!(record.value, Value::Failed { error } if error == "no"));
    }
}
