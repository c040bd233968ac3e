//! The page of functions: where this library's instructions are.

use std::fmt::Write as _;

use crate::bench::results::{OWN, Results, Row};
use crate::bench::table::{Table, number};

const INTRODUCTION: &str = "\
# Where the instructions are

`cargo xtask bench` writes this page with [benchmarks.md](benchmarks.md). For each workload that it
counts, it lists which functions the instructions of this library in user space are in, for one
operation. What a function has called is listed by itself, unless the compiler has put it into the
caller.

The functions of the workload itself (`measured_section`, and those of `tests/bench`) and the system's
`write`, `read`, `poll`, `malloc` and `memcpy` are part of what benchmarks.md counts, for every
library alike.
";

/// Functions with a smaller share are summed up.
const LEAST_SHARE: f64 = 0.02;

/// The page.
pub(crate) fn page(results: &Results) -> String {
    let mut page = INTRODUCTION.to_owned();
    for row in &results.rows {
        let functions = row.of(OWN).map(|own| &own.functions[..]);
        if let Some(functions @ [_, ..]) = functions {
            let (workload, device) = (&row.subject.workload, &row.subject.device);
            // Writing to a string succeeds.
            let _ = write!(
                page,
                "\n## {workload}, {device}\n\n{}",
                table(row, functions)
            );
        }
    }
    page
}

fn table(row: &Row, functions: &[(String, f64)]) -> Table {
    let headings = ["function", "instructions", "share"];
    let mut table = Table::with_text(1, headings.map(str::to_owned).to_vec());
    let sum: f64 = functions.iter().map(|(_, instructions)| instructions).sum();
    let mut add = |name: String, instructions: f64| {
        let share = 100.0 * instructions / sum;
        table.add(vec![
            name,
            number(Some(instructions)),
            format!("{share:.0} %"),
        ]);
    };
    let mut rest = 0.0;
    for (name, instructions) in by_short_name(functions) {
        if instructions < sum * LEAST_SHARE {
            rest += instructions;
        } else {
            add(format!("`{name}`"), instructions);
        }
    }
    if rest > 0.0 {
        add("others".to_owned(), rest);
    }
    let counted = row.of(OWN).and_then(|own| own.instructions);
    add("all".to_owned(), counted.unwrap_or(sum));
    table
}

/// The functions of the same short name together, those with the most instructions first.
fn by_short_name(functions: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for (name, instructions) in functions {
        let name = short(name);
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += instructions,
            None => sums.push((name, *instructions)),
        }
    }
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sums
}

/// The name of a function with that of its type or module, without what the type is generic over.
fn short(name: &str) -> String {
    let name = name.trim_end_matches("::{{closure}}");
    if let Some(dropped) = name.strip_prefix("core::ptr::drop_in_place<") {
        return format!(
            "drop_in_place<{}>",
            short_type(dropped.trim_end_matches('>'))
        );
    }
    let Some((of, function)) = name.rsplit_once("::") else {
        return name.to_owned();
    };
    // `<a::Type as b::Trait>::f` and `m::<impl a::Type>::f`
    let of = match of.rsplit_once("<impl ") {
        Some((_, implemented)) => implemented.trim_end_matches('>'),
        None => of,
    };
    let of = of.rsplit_once(" for ").map_or(of, |(_, of)| of);
    let of = of.trim_start_matches('<');
    let of = of.split_once(" as ").map_or(of, |(of, _)| of);
    format!("{}::{function}", short_type(of))
}

/// A type without its module, and without what it is generic over.
fn short_type(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name);
    name.trim_end_matches("::")
        .rsplit("::")
        .next()
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use rdmacm_init::bench::Record;

    use super::*;

    #[test]
    fn names_are_short() {
        for (name, expected) in [
            ("write", "write"),
            (
                "rdmacm_verbs::work_queue::send::SendQueue::post_inline",
                "SendQueue::post_inline",
            ),
            ("a::b::<impl c::stream::Queue>::write", "Queue::write"),
            ("<a::Device as b::Source>::drain", "Device::drain"),
            (
                "a::<impl b::SendRing for c::rxe::Queue<d::Slot>>::push",
                "Queue::push",
            ),
            ("alloc::sync::Arc<T,A>::drop_slow", "Arc::drop_slow"),
            ("core::ptr::drop_in_place<a::Event>", "drop_in_place<Event>"),
            (
                "a::Uverbs::try_doorbell::{{closure}}",
                "Uverbs::try_doorbell",
            ),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn small_functions_are_summed_up() {
        let line = r#"{"library":"rdmacm","group":"ids","device":"rxe","workload":"id","counts":"exact","bytes":null,"is_kept":false,"kind":"functions","operations":2,"functions":[{"name":"a::b","instructions":190},{"name":"z::a::b::{{closure}}::{{closure}}","instructions":6},{"name":"c","instructions":2},{"name":"d","instructions":2}]}"#;
        let results = Results::new(vec![serde_json::from_str::<Record>(line).unwrap()]);
        let page = page(&results);
        let expected = "\
## id, rxe

| function | instructions | share |
|----------|-------------:|------:|
| `a::b`   |           98 |  98 % |
| others   |            2 |   2 % |
| all      |          100 | 100 % |
";
        assert!(page.ends_with(expected), "{page}");
    }
}
