//! What the comparison found.

use std::fmt;
use std::io::{self, Write};

use rdmacm_abi::layout::Origin;

use super::probe::Answers;
use super::rows::Row;

/// What the comparison found.
#[derive(Debug)]
pub(crate) struct Report {
    /// Rows that are the same, over all sets.
    pub(crate) same: usize,
    /// Declarations that a set of headers rightly lacks, by its label.
    pub(crate) absent: Vec<(String, String)>,
    /// What is not as it must be.
    pub(crate) differences: Vec<Difference>,
}

/// A number that is not the same on both sides, or a declaration that is
/// missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The label of the headers.
    pub(crate) set: String,
    /// The declaration in C.
    pub(crate) c_name: String,
    /// The same in Rust.
    pub(crate) rust_name: String,
    /// What differs: `offset`, `size`, `alignment`, `value`.
    pub(crate) what: &'static str,
    /// The number of the Rust side.
    pub(crate) ours: u64,
    /// The number of the headers; nothing if they lack the declaration.
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
    pub(super) fn new(rows: &[Row], answers: &[Answers]) -> Self {
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

    fn compare(&mut self, set: &Answers, row: &Row, theirs: Option<&[u64]>) {
        if theirs.is_none() && may_lack(set, row.origin) {
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

    /// Whether nothing differs.
    pub(crate) fn is_ok(&self) -> bool {
        self.differences.is_empty()
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

/// Whether these headers may do without a declaration.
fn may_lack(set: &Answers, origin: Origin) -> bool {
    match origin {
        Origin::Kernel {
            since: (major, minor),
        } => (set.version.0, set.version.1) < (major.into(), minor.into()),
        Origin::UserSpace => true,
    }
}

/// Writes what each side has, a column a side.
pub(super) fn write_table(
    rows: &[Row],
    answers: &[Answers],
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

/// A field's name without its structure's, which stands above it.
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
