//! The result of the comparison.

use std::fmt;
use std::io::{self, Write};

use rdmacm_abi::layout::Origin;

use super::probe::HeaderValues;
use super::rows::Row;

/// The result of the comparison.
#[derive(Debug)]
pub(crate) struct Report {
    /// The number of equal rows, over all sets.
    pub(crate) same: usize,
    /// Declarations that a set of headers may lack, with its label.
    pub(crate) absent: Vec<(String, String)>,
    /// The differences.
    pub(crate) differences: Vec<Difference>,
}

/// A number that is not equal, or a declaration that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The label of the headers.
    pub(crate) set: String,
    /// The C declaration.
    pub(crate) c_name: String,
    /// The Rust declaration.
    pub(crate) rust_name: String,
    /// What differs: `offset`, `size`, `alignment`, `value`.
    pub(crate) what: &'static str,
    /// The number in Rust.
    pub(crate) ours: u64,
    /// The number in the headers, `None` if they lack the declaration.
    pub(crate) theirs: Option<u64>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            set,
            c_name,
            rust_name,
            what,
            ours,
            theirs,
        } = self;
        write!(f, "{c_name} ({rust_name}): {what} is {ours} here and ")?;
        match theirs {
            Some(theirs) => write!(f, "{theirs} in the headers '{set}'"),
            None => write!(f, "missing from the headers '{set}', which must have it"),
        }
    }
}

impl Report {
    pub(super) fn new(rows: &[Row], answers: &[HeaderValues]) -> Self {
        let mut report = Self {
            same: 0,
            absent: Vec::new(),
            differences: Vec::new(),
        };
        for set in answers {
            for (row, theirs) in rows.iter().zip(&set.rows) {
                report.compare(set, row, theirs.as_deref());
            }
        }
        report
    }

    fn compare(&mut self, set: &HeaderValues, row: &Row, theirs: Option<&[u64]>) {
        if theirs.is_none() && may_lack(set, row) {
            let absent = (set.label.clone(), row.c_name.clone());
            return self.absent.push(absent);
        }
        let before = self.differences.len();
        for (index, cell) in row.cells.iter().enumerate() {
            let theirs = theirs.map(|values| values[index]);
            if theirs != Some(cell.ours) {
                self.differences.push(Difference {
                    set: set.label.clone(),
                    c_name: row.c_name.clone(),
                    rust_name: row.rust_name.clone(),
                    what: cell.what,
                    ours: cell.ours,
                    theirs,
                });
            }
        }
        if self.differences.len() == before {
            self.same += 1;
        }
    }

    /// Returns whether something was compared, and there is no difference.
    pub(crate) fn is_ok(&self) -> bool {
        self.same > 0 && self.differences.is_empty()
    }

    pub(super) fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        for difference in &self.differences {
            writeln!(out, "DIFFERS: {difference}")?;
        }
        let (same, absent) = (self.same, self.absent.len());
        let differences = self.differences.len();
        writeln!(
            out,
            "{same} rows the same, {absent} absent, {differences} different"
        )
    }
}

/// Returns whether these headers may lack a declaration.
fn may_lack(set: &HeaderValues, row: &Row) -> bool {
    match row.origin {
        Origin::Kernel {
            since: (major, minor),
        } => (set.version.0, set.version.1) < (major.into(), minor.into()),
        Origin::UserSpace { is_recent } => is_recent || set.missing_headers.contains(row.header),
    }
}

/// Writes all numbers: a column for Rust and one for each set of headers.
pub(super) fn write_table(
    rows: &[Row],
    answers: &[HeaderValues],
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "{:<52} {:>18}",
        "struct: size alignment; field: offset size", "rdmacm-abi"
    )?;
    for set in answers {
        let (major, minor, point) = set.version;
        let heading = format!("{} {major}.{minor}.{point}", set.label);
        write!(out, " {heading:>18}")?;
    }
    writeln!(out)?;
    for (index, row) in rows.iter().enumerate() {
        let indent = if row.c_name == row.group || row.group.is_empty() {
            ""
        } else {
            "  "
        };
        let ours = row.cells.iter().map(|cell| cell.ours);
        write!(
            out,
            "{:<52} {:>18}",
            format!("{indent}{}", short(row)),
            joined(ours)
        )?;
        for set in answers {
            let theirs = match &set.rows[index] {
                Some(values) => joined(values.iter().copied()),
                None => "absent".to_owned(),
            };
            write!(out, " {theirs:>18}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A field's name without the structure's, whose row is above.
fn short(row: &Row) -> &str {
    match row.c_name.strip_prefix(row.group) {
        Some(field) if !field.is_empty() => field,
        _ => &row.c_name,
    }
}

fn joined(numbers: impl Iterator<Item = u64>) -> String {
    let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
    numbers.join(" ")
}
