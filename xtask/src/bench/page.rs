//! The report: tables, and a page with plots.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::bench::before;
use crate::bench::plot::Plot;
use crate::bench::results::{Numbers, OWN, Results, Row, TCP};
use crate::bench::table::{NOTHING, Table, number};
use crate::workspace::Workspace;

/// The page, and the folder of its plots.
const PAGE: &str = "docs/benchmarks.md";
const PLOTS: &str = "docs/benchmarks";
/// The column of earlier numbers.
const BEFORE: &str = "before";

/// What the page says before its tables.
const INTRODUCTION: &str = "\
# Benchmarks

`cargo xtask bench` measures this library, librdmacm, TCP and bare writes doing the same work on the
same devices, and writes this page. Every number is for one operation. [testing.md](testing.md#benchmarks)
explains how it is measured, and which of the counts are tests.

| library | what it is |
|---|---|
| bare | the same commands, prepared before, written with `write(2)` and nothing else: the floor |
| C | librdmacm and libibverbs of this release |
| TCP | `TcpStream` of Rust's standard library, between the same addresses |
| before | this library before it was measured |
| rdmacm | this library |

Times are those of an emulated machine if the machine below is one: compare them only with each
other. A ratio is this library's time divided by that of C, or of TCP, in the same round: the median of
all rounds, and the quartiles. In the plots, a point further left is better.
";

/// A group's title.
fn title(group: &str) -> &str {
    match group {
        "ids" => "Ids",
        "names" => "Names",
        "cold-start" => "Cold start",
        "events" => "Events",
        "connections" => "Connections",
        "data-path" => "Posting and polling",
        "messages" => "Messages",
        "streams" => "Byte streams",
        "throughput" => "Throughput",
        "memory" => "Memory",
        "growth" => "Growth",
        other => other,
    }
}

/// The tables of all groups.
pub(crate) fn tables(results: &Results) -> String {
    let sections = results.groups().into_iter().map(|group| {
        let tables = group_tables(results, group);
        format!("## {}\n\n{tables}", title(group))
    });
    sections.collect::<Vec<_>>().join("\n")
}

/// Writes the page and its plots, and returns the page's path.
pub(crate) fn write(
    workspace: &Workspace,
    results: &Results,
    machine: &str,
) -> anyhow::Result<PathBuf> {
    let plots = workspace.root.join(PLOTS);
    fs::create_dir_all(&plots).with_context(|| format!("make {}", plots.display()))?;
    let mut page = format!("{INTRODUCTION}\nMachine: {machine}.\n");
    for group in results.groups() {
        let rows: Vec<_> = rows(results, group).collect();
        let plot = Plot::new(title(group), results, &rows).to_string();
        fs::write(plots.join(format!("{group}.svg")), plot).context("write a plot")?;
        let title = title(group);
        let tables = group_tables(results, group);
        write!(
            page,
            "\n## {title}\n\n![{title}](benchmarks/{group}.svg)\n\n{tables}"
        )?;
    }
    let path = workspace.root.join(PAGE);
    fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn rows<'a>(results: &'a Results, group: &str) -> impl Iterator<Item = &'a Row> {
    let in_group = move |row: &&Row| row.subject.group == group;
    results.rows.iter().filter(in_group)
}

/// How a library is called in tables and plots.
pub(crate) fn label(library: &str) -> String {
    if library.starts_with(|character: char| character.is_ascii_digit()) {
        format!("C {library}")
    } else if library == TCP {
        library.to_uppercase()
    } else {
        library.to_owned()
    }
}

fn group_tables(results: &Results, group: &str) -> String {
    let rows: Vec<_> = rows(results, group).collect();
    let number_of = |what: fn(&Numbers) -> Option<f64>| {
        move |row: &Row, library: &str| number(row.of(library).and_then(what))
    };
    let instructions = |row: &Row, library: &str| match library {
        BEFORE => {
            let subject = &row.subject;
            number(before::instructions(&subject.device, &subject.workload))
        }
        library => number(row.of(library).and_then(|numbers| numbers.instructions)),
    };
    let mut libraries: Vec<&str> = results.libraries.iter().map(String::as_str).collect();
    let all = libraries.clone();
    if let Some(own) = libraries.iter().position(|library| *library == OWN) {
        libraries.insert(own, BEFORE);
    }
    let compared: Vec<_> = results.compared().map(String::as_str).collect();
    let ratio = |row: &Row, library: &str| {
        let ratio = row.ratio(library);
        ratio.map_or_else(|| NOTHING.to_owned(), |ratio| ratio.to_string())
    };
    let columns = |libraries: &[&str]| -> Vec<String> {
        libraries.iter().map(|library| label(library)).collect()
    };
    let own_over = compared
        .iter()
        .map(|library| format!("rdmacm / {}", label(library)));
    let tables = [
        (
            "Instructions in user space",
            columns(&libraries),
            table(&rows, &libraries, &instructions),
        ),
        (
            "System calls",
            columns(&all),
            table(&rows, &all, &number_of(|numbers| numbers.calls)),
        ),
        (
            "Reads that found nothing",
            columns(&all),
            table(&rows, &all, &number_of(|numbers| numbers.reads_of_nothing)),
        ),
        (
            "Allocations",
            columns(&all),
            table(&rows, &all, &number_of(|numbers| numbers.allocations)),
        ),
        (
            "Bytes on the heap that remain",
            columns(&all),
            table(&rows, &all, &number_of(|numbers| numbers.live_bytes)),
        ),
        (
            "Bytes of the process in memory that remain",
            columns(&all),
            table(&rows, &all, &|row, library| {
                number(row.resident_bytes(library))
            }),
        ),
        (
            "Time in µs",
            columns(&all),
            table(
                &rows,
                &all,
                &number_of(|numbers| Some(numbers.time()? / 1_000.0)),
            ),
        ),
        (
            "Megabytes in a second",
            columns(&all),
            table(&rows, &all, &|row, library| {
                number(row.megabytes_in_a_second(library))
            }),
        ),
        (
            "Instructions for a KiB",
            columns(&all),
            table(&rows, &all, &|row, library| {
                number(row.instructions_for_a_kib(library))
            }),
        ),
        (
            "Ratio of times",
            own_over.collect(),
            table(&rows, &compared, &ratio),
        ),
    ];
    let mut text = String::new();
    for (title, columns, cells) in tables {
        let headings = ["workload".to_owned(), "device".to_owned()];
        let mut table = Table::new([&headings[..], &columns].concat());
        for row in cells {
            table.add(row);
        }
        let table = table.without_empty_columns();
        if !table.is_empty() {
            // Writing to a string never fails.
            let _ = write!(text, "{title}:\n\n{table}\n");
        }
    }
    text
}

/// A row of cells for each workload.
fn table(
    rows: &[&Row],
    libraries: &[&str],
    cell: &dyn Fn(&Row, &str) -> String,
) -> Vec<Vec<String>> {
    let row = |row: &&Row| {
        let names = [row.subject.workload.clone(), row.subject.device.clone()];
        let cells = libraries.iter().map(|library| cell(row, library));
        names.into_iter().chain(cells).collect()
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::Record;

    const LINES: &str = r#"
{"library":"bare","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"instructions","operations":64,"instructions":12503}
{"library":"44","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"time","round":0,"operations":2,"nanoseconds":4000,"allocations":16,"live_bytes":0,"resident_bytes":0}
{"library":"rdmacm","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"time","round":0,"operations":2,"nanoseconds":2000,"allocations":2,"live_bytes":0,"resident_bytes":0}
{"library":"rdmacm","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"calls","operations":2,"calls":12,"by_name":{"write":12},"allocations":2}
"#;

    fn results() -> Results {
        let lines = LINES.lines().filter(|line| !line.is_empty());
        let records = lines.map(|line| serde_json::from_str::<Record>(line).unwrap());
        Results::new(records.collect())
    }

    #[test]
    fn a_group_has_a_table_for_what_was_measured() {
        let text = tables(&results());
        for line in ["## Ids", "| id       | rxe    |  195 |  6,286 |"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(
            text.contains("rdmacm / C 44") && text.contains("0.50 (0.50–0.50)"),
            "{text}"
        );
    }

    #[test]
    fn the_page_has_a_plot_for_each_group() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: folder.path().to_owned(),
            target: folder.path().to_owned(),
        };
        let path = write(&workspace, &results(), "a guest").unwrap();
        let page = fs::read_to_string(path).unwrap();
        assert!(page.contains("![Ids](benchmarks/ids.svg)") && page.contains("Machine: a guest."));
        let plot = fs::read_to_string(folder.path().join("docs/benchmarks/ids.svg")).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("id rxe"));
    }
}
