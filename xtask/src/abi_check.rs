//! Compares the tables of `rdmacm-abi` with C headers, row by row.
//!
//! A C file asks the compiler for every size, alignment, offset and constant
//! of the tables; what it answers from each set of headers stands beside what
//! the Rust structures were compiled against. What an older kernel's headers
//! lack is named absent. Anything else that is not the same is a difference,
//! and so is what a header of that version must have and lacks.

use std::io::Write;
use std::path::PathBuf;

use rdmacm_abi::layout::{self, Constant, StructLayout};

mod probe;
mod report;
mod rows;

#[cfg(test)]
mod tests;

pub(crate) use report::Report;

/// Headers to compare with.
#[derive(Clone, Debug)]
pub(crate) struct HeaderSet {
    /// What to call them in the table: `installed`, `new`.
    pub(crate) label: String,
    /// Where to look before the compiler's own directories.
    pub(crate) include_dirs: Vec<PathBuf>,
}

/// What is compared.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The structures.
    pub(crate) structs: Vec<StructLayout>,
    /// The constants.
    pub(crate) constants: Vec<Constant>,
}

impl Table {
    /// What `rdmacm-abi` exports.
    pub(crate) fn of_crate() -> Self {
        Self {
            structs: layout::structs().copied().collect(),
            constants: layout::constants().copied().collect(),
        }
    }
}

/// Compares what `rdmacm-abi` exports with each of `sets`, and writes the
/// table of both to `out`.
///
/// # Errors
///
/// There is no C compiler, it fails for another reason than a missing
/// declaration, or `out` cannot be written. A difference is no error: it
/// stands in the report.
pub(crate) fn check(sets: &[HeaderSet], out: &mut dyn Write) -> anyhow::Result<Report> {
    check_table(&Table::of_crate(), sets, out)
}

/// Compares any table, as [`check`] does that of the crate.
pub(crate) fn check_table(
    table: &Table,
    sets: &[HeaderSet],
    out: &mut dyn Write,
) -> anyhow::Result<Report> {
    let rows = rows::of_table(table);
    let answers = sets
        .iter()
        .map(|set| probe::ask(set, &rows))
        .collect::<anyhow::Result<Vec<_>>>()?;
    report::write_table(&rows, &answers, out)?;
    let report = Report::new(&rows, &answers);
    report.write_summary(out)?;
    Ok(report)
}
