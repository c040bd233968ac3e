//! How the time of an operation rises with what exists beside it, as SVG: a line is flat if it
//! does not.

use std::collections::BTreeMap;
use std::fmt;

use crate::bench::page::label;
use crate::bench::results::{Results, Row};
use crate::bench::svg::{begin, coloured, legend, line, point, text, tick_label};

const TOP: f64 = 74.0;
const LEFT: f64 = 50.0;
/// The area of the lines of one kind.
const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 160.0;
const GAP: f64 = 55.0;
const BOTTOM: f64 = 44.0;

/// Times in µs, by how many exist.
type Line = BTreeMap<u32, f64>;

/// The lines of operations of one kind.
#[derive(Debug)]
struct Panel {
    title: String,
    lines: Vec<(Line, &'static str)>,
}

/// A plot of workloads whose names end with how many exist.
#[derive(Debug)]
pub(crate) struct Growth {
    title: String,
    libraries: Vec<(String, &'static str)>,
    panels: Vec<Panel>,
}

/// The kind of a workload, and how many exist.
fn kind_and_number(workload: &str) -> Option<(&str, u32)> {
    let (kind, number) = workload.rsplit_once('-')?;
    let kind = kind.strip_suffix("-at").unwrap_or(kind);
    Some((kind, number.parse().ok()?))
}

impl Growth {
    pub(crate) fn new(title: &str, results: &Results, rows: &[&Row]) -> Self {
        let libraries = coloured(results);
        let mut kinds: Vec<&str> = Vec::new();
        for row in rows {
            let kind = kind_and_number(&row.subject.workload).map(|(kind, _)| kind);
            kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
        }
        let line = |kind: &str, library: &str| -> Line {
            let points = rows.iter().filter_map(|row| {
                let (other, number) = kind_and_number(&row.subject.workload)?;
                let time = row.of(library)?.time()? / 1_000.0;
                (other == kind).then_some((number, time))
            });
            points.collect()
        };
        let panels = kinds.iter().map(|kind| {
            let lines = libraries.iter();
            let lines = lines.map(|(library, colour)| (line(kind, library), *colour));
            Panel {
                title: format!("{kind}, µs"),
                lines: lines.filter(|(line, _)| !line.is_empty()).collect(),
            }
        });
        // A kind that was counted and not timed has no line.
        let panels: Vec<_> = panels.filter(|panel| !panel.lines.is_empty()).collect();
        let is_shown = |colour: &str| {
            let mut lines = panels.iter().flat_map(|panel| &panel.lines);
            lines.any(|(_, other)| *other == colour)
        };
        let libraries = libraries.iter().filter(|(_, colour)| is_shown(colour));
        Self {
            title: title.to_owned(),
            libraries: libraries
                .map(|(library, colour)| (label(library), *colour))
                .collect(),
            panels,
        }
    }
}

/// Where values are in a panel: logarithms of numbers, and times from 0 on.
struct Axes {
    left: f64,
    /// Logarithms.
    first: f64,
    last: f64,
    most: f64,
}

impl Axes {
    fn new(panel: &Panel, left: f64) -> Self {
        let numbers = panel.lines.iter().flat_map(|(line, _)| line.keys());
        let exponents = numbers.map(|number| f64::from(*number).log10());
        let first = exponents.clone().fold(f64::INFINITY, f64::min).floor();
        let last = exponents.fold(f64::NEG_INFINITY, f64::max).ceil();
        let times = panel.lines.iter().flat_map(|(line, _)| line.values());
        Self {
            left,
            first,
            last: last.max(first + 1.0),
            most: round_up(times.copied().fold(0.0, f64::max)),
        }
    }

    fn x(&self, number: f64) -> f64 {
        self.left + WIDTH * (number.log10() - self.first) / (self.last - self.first)
    }

    fn y(&self, time: f64) -> f64 {
        TOP + HEIGHT * (1.0 - time / self.most)
    }

    fn draw(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bottom = TOP + HEIGHT;
        for quarter in 0..=4 {
            let time = self.most * f64::from(quarter) / 4.0;
            let (y, right) = (self.y(time), self.left + WIDTH);
            line(formatter, (self.left, y), (right, y), "#dddddd", 1.0)?;
            text(
                formatter,
                self.left - 6.0,
                y + 4.0,
                "end",
                &tick_label(time),
            )?;
        }
        let exponents = std::iter::successors(Some(self.first), |one| Some(one + 1.0));
        for exponent in exponents.take_while(|exponent| *exponent <= self.last) {
            let number = 10_f64.powf(exponent);
            let label = tick_label(number);
            text(formatter, self.x(number), bottom + 18.0, "middle", &label)?;
        }
        Ok(())
    }
}

/// To a number whose quarters are short: 2, 4, 8 or 10 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

impl fmt::Display for Growth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panels = f64::from(u16::try_from(self.panels.len()).unwrap_or(u16::MAX));
        let width = LEFT + (WIDTH + GAP) * panels;
        begin(formatter, width, TOP + HEIGHT + BOTTOM)?;
        let names = self.libraries.iter();
        let names = names.map(|(name, colour)| (name.as_str(), *colour));
        legend(formatter, &self.title, LEFT + 60.0, names)?;
        let mut left = LEFT;
        for panel in &self.panels {
            let axes = Axes::new(panel, left);
            axes.draw(formatter)?;
            text(formatter, left, TOP - 14.0, "start", &panel.title)?;
            for (points, colour) in &panel.lines {
                let place =
                    |(number, time): (&u32, &f64)| (axes.x(f64::from(*number)), axes.y(*time));
                let places: Vec<_> = points.iter().map(place).collect();
                for pair in places.windows(2) {
                    line(formatter, pair[0], pair[1], colour, 2.0)?;
                }
                for (x, y) in places {
                    point(formatter, x, y, colour)?;
                }
            }
            left += WIDTH + GAP;
        }
        writeln!(formatter, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_names_how_many_exist() {
        assert_eq!(kind_and_number("id-at-100"), Some(("id", 100)));
        assert_eq!(
            kind_and_number("queue-pair-1000"),
            Some(("queue-pair", 1000))
        );
        assert_eq!(kind_and_number("round-trip"), None);
    }

    #[test]
    fn what_was_not_timed_has_no_panel() {
        let line = r#"{"library":"rdmacm","group":"growth","device":"rxe","workload":"id-at-10","counts":"exact","bytes":null,"is_kept":false,"kind":"instructions","operations":2,"instructions":4}"#;
        let results = Results::new(vec![serde_json::from_str(line).unwrap()]);
        let rows: Vec<_> = results.rows.iter().collect();
        assert!(Growth::new("Growth", &results, &rows).panels.is_empty());
    }

    #[test]
    fn axes_end_at_short_numbers() {
        let values = [0.0, 0.5, 9.0, 17.0, 399.0, 401.0, 5_000.0];
        let rounded = values.map(|value| tick_label(round_up(value)));
        assert_eq!(rounded, ["1", "1", "10", "20", "400", "800", "8k"]);
    }

    #[test]
    fn a_plot_has_a_line_for_each_library_and_kind() {
        let line = |points: &[(u32, f64)]| points.iter().copied().collect::<Line>();
        let plot = Growth {
            title: "Growth".to_owned(),
            libraries: vec![("C 44".to_owned(), "red"), ("rdmacm".to_owned(), "blue")],
            panels: vec![Panel {
                title: "id, µs".to_owned(),
                lines: vec![
                    (line(&[(10, 200.0), (100, 200.0)]), "red"),
                    (line(&[(10, 100.0), (100, 400.0)]), "blue"),
                ],
            }],
        };
        let svg = plot.to_string();
        // Four values, and two in the legend.
        assert_eq!(svg.matches("<circle").count(), 6);
        let flat = "y1=\"154.0\" x2=\"230.0\" y2=\"154.0\" stroke=\"red\"";
        assert!(svg.contains(flat), "{svg}");
    }
}
