//! The report: tables, and a page with plots.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use rdmacm_init::bench::Group;

use crate::bench::before;
use crate::bench::growth::Growth;
use crate::bench::instructions;
use crate::bench::plot::Plot;
use crate::bench::results::{OWN, Results, Row, TCP};
use crate::bench::table::{NOTHING, Table, number};
use crate::workspace::Workspace;

/// The page, and the folder of its plots.
const PAGE: &str = "docs/benchmarks.md";
const PLOTS: &str = "docs/benchmarks";
/// The page of functions.
const FUNCTIONS: &str = "docs/instructions.md";
/// The column of earlier numbers.
const BEFORE: &str = "before";

/// What the page says before its tables.
const INTRODUCTION: &str = "\
# Benchmarks

`cargo xtask bench` measures this library, librdmacm, TCP and bare writes doing the same work on the
same devices, and writes this page. Every number is for one operation. [testing.md](testing.md#benchmarks)
explains how it is measured, and which of the counts are tests; [instructions.md](instructions.md)
lists the functions that the instructions are in, and [costs.md](costs.md) says why some operations
cost more than librdmacm's.

| library | what it is |
|---|---|
| `bare` | the same commands, prepared before, written with `write(2)` and nothing else: the floor |
| `C N` | librdmacm and libibverbs of rdma-core release `N` |
| `TCP` | `TcpStream` of Rust's standard library, between the same addresses |
| `before` | this library before it was first optimized |
| `rdmacm` | this library |

Times are those of an emulated machine if the machine below is one: compare them only with each
other. A ratio is this library's time divided by that of C, or of TCP, in the same round: the median of
all rounds, and the quartiles. In the plots, a point further left is better, but for throughput; those
of growth show how the time of an operation rises with what exists beside it.
";

/// The file name of a group's plot, and its title.
const fn names(group: Group) -> (&'static str, &'static str) {
    match group {
        Group::Ids => ("ids", "Ids"),
        Group::Names => ("names", "Names"),
        Group::ColdStart => ("cold-start", "Cold start"),
        Group::Events => ("events", "Events"),
        Group::Connections => ("connections", "Connections"),
        Group::DataPath => ("data-path", "Posting and polling"),
        Group::Messages => ("messages", "Messages"),
        Group::Streams => ("streams", "Byte streams"),
        Group::Throughput => ("throughput", "Throughput"),
        Group::Memory => ("memory", "Memory"),
        Group::Growth => ("growth", "Growth"),
    }
}

/// The tables of all groups.
pub(crate) fn tables(results: &Results) -> String {
    let sections = results.groups().into_iter().map(|group| {
        let tables = group_tables(results, group);
        let (_, title) = names(group);
        format!("## {title}\n\n{tables}")
    });
    sections.collect::<Vec<_>>().join("\n")
}

/// Writes the pages and the plots, and returns the first page's path.
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
        let (file, title) = names(group);
        let plot = plot(group, results, &rows);
        fs::write(plots.join(format!("{file}.svg")), plot).context("write a plot")?;
        let tables = group_tables(results, group);
        write!(
            page,
            "\n## {title}\n\n![{title}](benchmarks/{file}.svg)\n\n{tables}"
        )?;
    }
    page += &failures(results);
    let functions = workspace.root.join(FUNCTIONS);
    let text = instructions::page(results);
    fs::write(&functions, text).with_context(|| format!("write {}", functions.display()))?;
    let path = workspace.root.join(PAGE);
    fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The plot of a group, by what the group is about.
fn plot(group: Group, results: &Results, rows: &[&Row]) -> String {
    let (_, title) = names(group);
    let quantity: (&str, Quantity) = match group {
        Group::Growth => return Growth::new(title, results, rows).to_string(),
        Group::Throughput => ("megabytes in a second", Row::megabytes_in_a_second),
        Group::Memory => ("bytes in memory", Row::resident_bytes),
        _ => ("instructions in user space", |row, library| {
            row.of(library)?.instructions
        }),
    };
    Plot::new(title, quantity, results, rows).to_string()
}

/// Why cells are empty, or of fewer rounds, for which there is a workload.
fn failures(results: &Results) -> String {
    if results.failures.is_empty() {
        return String::new();
    }
    let mut text =
        "\n## Not measured\n\nRounds that failed are not in the tables, by library and workload:\n"
            .to_owned();
    // Mostly the same ones in each round.
    let mut known = HashSet::new();
    for failure in results.failures.iter().map(|one| reason(one)) {
        if known.insert(failure.clone()) {
            text.extend(["\n- ", &failure]);
        }
    }
    text + "\n"
}

/// In one line, and without the backtrace, which names paths of one machine.
fn reason(failure: &str) -> String {
    let reason = failure.split("Stack backtrace:").next().unwrap_or_default();
    let words: Vec<_> = reason.split_whitespace().collect();
    words.join(" ")
}

fn rows(results: &Results, group: Group) -> impl Iterator<Item = &Row> {
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

/// What a table shows of a workload, for a library.
pub(crate) type Quantity = fn(&Row, &str) -> Option<f64>;

/// The titles of tables, and what they show for each library.
const QUANTITIES: [(&str, Quantity); 8] = [
    ("System calls", |row, library| row.of(library)?.calls),
    ("Reads that found nothing", |row, library| {
        row.of(library)?.reads_of_nothing
    }),
    ("Allocations", |row, library| row.of(library)?.allocations),
    ("Bytes on the heap that remain", |row, library| {
        row.of(library)?.live_bytes
    }),
    (
        "Bytes of the process in memory that remain",
        Row::resident_bytes,
    ),
    ("Time in µs", |row, library| {
        Some(row.of(library)?.time()? / 1_000.0)
    }),
    ("Megabytes in a second", Row::megabytes_in_a_second),
    ("Instructions for a KiB", Row::instructions_for_a_kib),
];

fn group_tables(results: &Results, group: Group) -> String {
    let rows: Vec<_> = rows(results, group).collect();
    let libraries: Vec<&str> = results.libraries.iter().map(String::as_str).collect();
    let columns = |libraries: &[&str]| -> Vec<String> {
        libraries.iter().map(|library| label(library)).collect()
    };
    let mut text = instructions_table(&rows, &libraries);
    for (title, quantity) in QUANTITIES {
        let cells = table(&rows, &libraries, &|row, library| {
            number(quantity(row, library))
        });
        text += &titled(title, &columns(&libraries), cells);
    }
    let compared: Vec<_> = results.compared().map(String::as_str).collect();
    let own_over = |library: &String| format!("rdmacm / {library}");
    let own_over: Vec<_> = columns(&compared).iter().map(own_over).collect();
    let cells = table(&rows, &compared, &|row, library| {
        let ratio = row.ratio(library);
        ratio.map_or_else(|| NOTHING.to_owned(), |ratio| ratio.to_string())
    });
    text + &titled("Ratio of times", &own_over, cells)
}

/// The table of instructions, with what there were before.
fn instructions_table(rows: &[&Row], libraries: &[&str]) -> String {
    let mut libraries = libraries.to_vec();
    if let Some(own) = libraries.iter().position(|library| *library == OWN) {
        libraries.insert(own, BEFORE);
    }
    let cells = table(rows, &libraries, &|row, library| {
        number(match library {
            BEFORE => before::instructions(&row.subject.device, &row.subject.workload),
            library => row.of(library).and_then(|numbers| numbers.instructions),
        })
    });
    let columns: Vec<_> = libraries.iter().map(|library| label(library)).collect();
    titled("Instructions in user space", &columns, cells)
}

/// A table below its title; nothing if no cell has a number.
fn titled(title: &str, columns: &[String], cells: Vec<Vec<String>>) -> String {
    let headings = ["workload".to_owned(), "device".to_owned()];
    let mut table = Table::with_text(2, [&headings[..], columns].concat());
    for row in cells {
        table.add(row);
    }
    let table = table.without_empty_columns().without_empty_rows();
    if table.is_empty() {
        return String::new();
    }
    format!("{title}:\n\n{table}\n")
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
    use rdmacm_init::bench::Record;

    use super::*;

    const LINES: &str = r#"
{"library":"bare","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"instructions","operations":64,"instructions":12503}
{"library":"44","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"time","round":0,"operations":2,"nanoseconds":4000,"allocations":16,"live_bytes":0,"resident_bytes":0}
{"library":"rdmacm","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"time","round":0,"operations":2,"nanoseconds":2000,"allocations":2,"live_bytes":0,"resident_bytes":0}
{"library":"rdmacm","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"calls","operations":2,"calls":12,"by_name":{"write":12},"allocations":2}
"#;

    #[test]
    fn a_failure_is_one_line_without_paths_of_a_machine() {
        let failure =
            "C siw/id: exit status: 1: Error: refused\n\nStack backtrace:\n   0: at /home/x";
        assert_eq!(reason(failure), "C siw/id: exit status: 1: Error: refused");
    }

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
    fn failures_are_named() {
        let failures = vec!["44 rxe/id: no\n  device".to_owned(); 2];
        let results = Results {
            failures,
            ..Results::default()
        };
        let text = super::failures(&results);
        assert!(
            text.ends_with("workload:\n\n- 44 rxe/id: no device\n"),
            "{text}"
        );
    }

    #[test]
    fn the_page_has_a_plot_for_each_group() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: folder.path().to_owned(),
            target: folder.path().to_owned(),
            packages: Vec::new(),
        };
        let path = write(&workspace, &results(), "a guest").unwrap();
        let page = fs::read_to_string(path).unwrap();
        assert!(page.contains("![Ids](benchmarks/ids.svg)") && page.contains("Machine: a guest."));
        assert!(!page.contains("## Not measured"));
        let plot = fs::read_to_string(folder.path().join("docs/benchmarks/ids.svg")).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("id rxe"));
    }
}
