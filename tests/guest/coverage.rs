//! Whether `tests/coverage.md` is true of this kernel.

use std::collections::{BTreeMap, BTreeSet};

use rdmacm_abi::{CommandNumber, EventNumber};

use crate::Suite;

crate::once!("coverage":
    the_table_is_true,
    a_cell_that_shows_nothing_is_refused,
);

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

/// Why there may be no test, and on which of the places.
const ABSENT: &[(&str, &[&str])] = &[
    ("no kernel has it", PLACES),
    ("newer than this kernel", &["stock/rxe", "stock/siw"]),
    ("the subnet administrator's answer", PLACES),
    ("iWARP has no groups", &["new/siw", "stock/siw"]),
    ("TCP's part on iWARP", &["new/siw", "stock/siw"]),
    (
        "RoCE has it for queue pairs of the kernel alone",
        &["new/rxe", "stock/rxe"],
    ),
];
const PLACES: &[&str] = &["new/rxe", "new/siw", "stock/rxe", "stock/siw"];

/// Which set of address commands one belongs to; the others belong to both.
const OF_DIALECT: &[(&str, &[&str])] = &[
    (
        "ip-only/",
        &["BIND_IP", "RESOLVE_IP", "QUERY_ROUTE", "JOIN_IP_MCAST"],
    ),
    (
        "any-family/",
        &["BIND", "RESOLVE_ADDR", "QUERY", "JOIN_MCAST"],
    ),
];

/// A cell names tests that run there and say that they show it, or one reason why
/// there is none.
fn check(place: &str, shown: &str, cell: &str, suite: &Suite) -> Result<(), String> {
    if let Some(reason) = cell.strip_prefix("absent: ") {
        let known = ABSENT.iter().find(|(known, _)| *known == reason);
        return match known {
            Some((_, places)) if places.contains(&place) => Ok(()),
            _ => Err(format!("{reason:?} is no reason on {place}")),
        };
    }
    for test in cell.split(", ") {
        let test = test
            .strip_prefix('`')
            .and_then(|test| test.strip_suffix('`'));
        let test = test.ok_or("neither tests nor `absent: REASON`")?;
        let name = format!("{place}/{test}");
        let case = suite.runs.get(&name);
        let case = case.ok_or_else(|| format!("no test {name} runs here"))?;
        if !case.shows.contains(&shown) {
            return Err(format!("{} does not say that it shows it", case.name));
        }
        let dialect = OF_DIALECT.iter().find(|(_, shows)| shows.contains(&shown));
        if dialect.is_some_and(|(dialect, _)| !test.starts_with(dialect)) {
            return Err(format!("{test} sends another command for it"));
        }
    }
    Ok(())
}

fn the_table_is_true() {
    let kernel = std::env::var("RDMACM_KERNEL").unwrap();
    let suite = crate::tests(&kernel);
    let mut names = BTreeSet::new();
    for title in ["## Commands", "## Events"] {
        let rows = rows(title);
        assert_eq!(rows.columns[2..], *PLACES);
        if title == "## Commands" {
            assert_complete(title, &rows, |number| CommandNumber::new(number).name());
        } else {
            assert_complete(title, &rows, |number| EventNumber::new(number).name());
        }
        for row in rows.rows.values() {
            names.insert(row[1]);
            let here = rows.columns.iter().zip(row).skip(2);
            for (place, cell) in here.filter(|(place, _)| place.starts_with(&kernel)) {
                check(place, row[1], cell, &suite)
                    .unwrap_or_else(|error| panic!("{title}: {} on {place}: {error}", row[1]));
            }
        }
    }
    for case in suite.runs.values() {
        let unknown = case.shows.iter().find(|name| !names.contains(**name));
        assert_eq!(unknown, None, "{} shows what there is not", case.name);
    }
}

fn a_cell_that_shows_nothing_is_refused() {
    let suite = crate::tests("new");
    let accepts = |place, shown, cell: &str| check(place, shown, cell, &suite).is_ok();
    let bind = "`any-family/bind::a_local_address_brings_its_device`";
    assert!(accepts("new/rxe", "BIND", bind));
    // Another command, another set of commands, no such test there.
    assert!(!accepts("new/rxe", "LISTEN", bind));
    assert!(!accepts("new/rxe", "BIND_IP", bind));
    assert!(!accepts(
        "new/siw",
        "TIMEWAIT_EXIT",
        "`kept::timewait_exit`"
    ));
    // A second name that is none, words, nothing.
    assert!(!accepts("new/rxe", "BIND", &format!("{bind}, `bind::no`")));
    assert!(!accepts("new/rxe", "BIND", "nobody ever needs it"));
    assert!(!accepts("new/rxe", "BIND", ""));
    // A reason that is none, or not there.
    assert!(!accepts("new/rxe", "BIND", "absent: nobody ever needs it"));
    assert!(!accepts("new/rxe", "BIND", "absent: iWARP has no groups"));
    assert!(accepts(
        "new/siw",
        "LEAVE_MCAST",
        "absent: iWARP has no groups"
    ));
}
