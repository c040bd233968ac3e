//! The lines that are printed.

use rdmacm_init::bench::{Record, Subject, Value};

use crate::run::library::Library;
use crate::run::selection::Selected;

/// Prints a result.
pub(crate) fn print(library: &Library, selected: &Selected<'_>, value: Value) {
    let subject = Subject {
        group: selected.measure.group,
        device: selected.device.name.clone(),
        workload: selected.measure.workload.to_owned(),
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
        Some(selected) => print(library, selected, Value::Failed { error }),
        None => print_line(library, None, Value::Failed { error }),
    }
}

fn print_line(library: &Library, subject: Option<Subject>, value: Value) {
    let record = Record {
        library: library.name.clone(),
        subject,
        value,
    };
    match serde_json::to_string(&record) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("{error}"),
    }
}
