//! Compares the tables of `rdmacm-abi` with C headers, row by row.
//!
//! A C program prints every size, alignment, offset and constant of the tables, from each set
//! of headers; the numbers of the Rust structures are beside them. Declarations that an older
//! kernel's headers lack are absent, and so are those of a header of rdma-core that does not
//! exist, and recent ones that it lacks. Anything else that is not equal is a difference, and so
//! is a missing declaration that the headers must have.

use std::io::Write;
use std::path::PathBuf;

use rdmacm_abi::layout::{self, Constant, StructLayout};

mod probe;
mod report;
mod rows;

#[cfg(test)]
mod tests;

pub(crate) use report::Report;

/// A set of headers to compare with.
#[derive(Clone, Debug)]
pub(crate) struct HeaderSet {
    /// Its name in the table: `installed`, `new`.
    pub(crate) label: String,
    /// Include directories, searched before the compiler's own.
    pub(crate) include_dirs: Vec<PathBuf>,
}

/// The structures and constants to compare.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The structures.
    pub(crate) structs: Vec<StructLayout>,
    /// The constants.
    pub(crate) constants: Vec<Constant>,
}

impl Table {
    /// The table of `rdmacm-abi`.
    pub(crate) fn of_crate() -> Self {
        Self {
            structs: layout::structs().copied().collect(),
            constants: layout::constants().copied().collect(),
        }
    }
}

/// Compares the table of `rdmacm-abi` with each of `sets`, and writes all numbers to `out`.
///
/// # Errors
///
/// Fails if there is no C compiler, if it fails for another reason than a missing
/// declaration, or if `out` cannot be written. Differences are in the report.
pub(crate) fn check(sets: &[HeaderSet], out: &mut dyn Write) -> anyhow::Result<Report> {
    check_table(&Table::of_crate(), sets, out)
}

/// Compares any table, as [`check`] does.
pub(crate) fn check_table(
    table: &Table,
    sets: &[HeaderSet],
    out: &mut dyn Write,
) -> anyhow::Result<Report> {
    let rows = rows::rows_of_table(table);
    let answers = sets
        .iter()
        .map(|set| probe::probe(set, &rows))
        .collect::<anyhow::Result<Vec<_>>>()?;
    report::write_table(&rows, &answers, out)?;
    let report = Report::new(&rows, &answers);
    report.write_summary(out)?;
    Ok(report)
}
