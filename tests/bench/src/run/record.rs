//! The lines that are printed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::meter::Measured;
use crate::plan::{Counts, Group};
use crate::run::functions::Function;
use crate::run::library::Library;
use crate::run::selection::Selected;

/// A result of a library, or of all its workloads if they failed together.
#[derive(Debug, Serialize)]
struct Record<'a> {
    library: &'a str,
    #[serde(flatten)]
    subject: Option<Subject<'a>>,
    #[serde(flatten)]
    value: &'a Value,
}

#[derive(Debug, Serialize)]
struct Subject<'a> {
    group: Group,
    device: &'a str,
    workload: &'a str,
    counts: Counts,
    bytes: Option<u32>,
    is_kept: bool,
}

/// What was measured, of all operations together.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Value {
    /// Of one round.
    Time {
        round: u32,
        #[serde(flatten)]
        measured: Measured,
    },
    /// Of a whole process, in one round.
    ProcessTime {
        round: u32,
        nanoseconds: u64,
    },
    Instructions {
        operations: u64,
        instructions: u64,
    },
    /// The functions that these instructions are in.
    Functions {
        operations: u64,
        functions: Vec<Function>,
    },
    /// System calls, and allocations of the same process.
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

/// Prints a result.
pub(crate) fn print(library: &Library, selected: &Selected<'_>, value: &Value) {
    let subject = Subject {
        group: selected.measure.group,
        device: &selected.device.name,
        workload: selected.measure.workload,
        counts: selected.measure.counts,
        bytes: selected.measure.bytes,
        is_kept: selected.measure.is_kept,
    };
    print_line(library, Some(subject), value);
}

/// Prints why a library has no result, of one workload or of all.
pub(crate) fn failed(library: &Library, selected: Option<&Selected<'_>>, error: &anyhow::Error) {
    let error = format!("{error:#}");
    match selected {
        Some(selected) => print(library, selected, &Value::Failed { error }),
        None => print_line(library, None, &Value::Failed { error }),
    }
}

fn print_line(library: &Library, subject: Option<Subject<'_>>, value: &Value) {
    let library = &library.name;
    let record = Record {
        library,
        subject,
        value,
    };
    match serde_json::to_string(&record) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("{error}"),
    }
}
