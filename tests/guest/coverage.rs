//! Whether `tests/coverage.md` is true of this kernel.

use std::collections::BTreeMap;

use rdmacm_abi::{CommandNumber, EventNumber};

use crate::Suite;

crate::once!("coverage": the_table_is_true);

const TABLE: &str = include_str!("../coverage.md");

/// The table's rows by number: names, then cells by kernel and device.
struct Rows<'a> {
    columns: Vec<&'a str>,
    rows: BTreeMap<u32, Vec<&'a str>>,
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split('|').map(str::trim).collect())
}

fn rows(title: &str) -> Rows<'static> {
    let (_, section) = TABLE.split_once(title).unwrap();
    let mut lines = section.lines().filter_map(cells);
    let columns = lines.next().unwrap();
    let mut rows = BTreeMap::new();
    for row in section.split("\n## ").next().unwrap().lines() {
        let Some(row) = cells(row) else { continue };
        if let Ok(number) = row[0].parse() {
            assert_eq!(row.len(), columns.len(), "{title}: {row:?}");
            assert!(
                rows.insert(number, row).is_none(),
                "{title}: {number} twice"
            );
        }
    }
    Rows { columns, rows }
}

/// Every number with a name has a row, and no other.
fn assert_complete(title: &str, rows: &Rows, name: impl Fn(u32) -> Option<&'static str>) {
    const BEYOND: u32 = 64;
    for number in 0..BEYOND {
        let row = rows.rows.get(&number).map(|row| row[1]);
        assert_eq!(row, name(number), "{title}: {number}");
    }
}

/// A cell names tests that run there, or says in words why there is none.
fn assert_true(title: &str, place: &str, cell: &str, row: &str, suite: &Suite) {
    let tests: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
    let says_why = cell.split_whitespace().count() >= 3;
    assert!(
        !tests.is_empty() || says_why,
        "{title}: {row} on {place}: {cell:?}"
    );
    for test in tests {
        let name = format!("{place}/{test}");
        let runs = suite.runs.contains_key(&name);
        assert!(runs, "{title}: {row}: no test {name} runs here");
    }
}

fn the_table_is_true() {
    let kernel = std::env::var("RDMACM_KERNEL").unwrap();
    // Of a kernel of one's own nothing is said.
    if !["new", "stock"].contains(&kernel.as_str()) {
        return;
    }
    let suite = crate::tests(&kernel);
    let places = ["new/rxe", "new/siw", "stock/rxe", "stock/siw"];
    for title in ["## Commands", "## Events"] {
        let rows = rows(title);
        assert_eq!(rows.columns[2..], places);
        if title == "## Commands" {
            assert_complete(title, &rows, |number| CommandNumber::new(number).name());
        } else {
            assert_complete(title, &rows, |number| EventNumber::new(number).name());
        }
        for row in rows.rows.values() {
            let here = rows.columns.iter().zip(row).skip(2);
            for (place, cell) in here.filter(|(place, _)| place.starts_with(&kernel)) {
                assert_true(title, place, cell, row[1], &suite);
            }
        }
    }
}
