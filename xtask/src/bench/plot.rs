//! A plot of a group as SVG: instructions of each library, and the ratios of times.

use std::fmt;

use crate::bench::page::label;
use crate::bench::results::{BARE, OWN, Results, Row, TCP};
use crate::bench::statistics::Quartiles;

const ROW: f64 = 26.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 34.0;
/// Where the names of workloads end.
const NAMES: f64 = 190.0;
/// The width of each half.
const HALF: f64 = 300.0;
const GAP: f64 = 50.0;
const WIDTH: f64 = NAMES + HALF + GAP + HALF + 30.0;
/// Colours that are different in grey too, for C libraries one after the other.
const C_COLOURS: [&str; 3] = ["#e69f00", "#d55e00", "#cc79a7"];

fn colour(library: &str, c_index: usize) -> &'static str {
    match library {
        OWN => "#0072b2",
        BARE => "#999999",
        TCP => "#009e73",
        _ => C_COLOURS[c_index % C_COLOURS.len()],
    }
}

/// One library's points.
#[derive(Debug)]
struct Series {
    name: String,
    colour: &'static str,
    /// Instructions, for each row.
    instructions: Vec<Option<f64>>,
    /// Ratios of this library's times to its times.
    ratios: Vec<Option<Quartiles>>,
}

impl Series {
    fn has_points(&self) -> bool {
        let has_instructions = self.instructions.iter().any(Option::is_some);
        has_instructions || self.ratios.iter().any(Option::is_some)
    }
}

/// A plot.
#[derive(Debug)]
pub(crate) struct Plot {
    title: String,
    rows: Vec<String>,
    series: Vec<Series>,
}

impl Plot {
    pub(crate) fn new(title: &str, results: &Results, rows: &[&Row]) -> Self {
        let mut c_index = 0;
        let series = results.libraries.iter().map(|library| {
            let colour = colour(library, c_index);
            let is_c = ![OWN, BARE, TCP].contains(&library.as_str());
            c_index += usize::from(is_c);
            let is_compared = results.compared().any(|compared| compared == library);
            let instructions = |row: &&Row| row.of(library)?.instructions;
            let ratio = |row: &&Row| row.ratio(library).filter(|_| is_compared);
            Series {
                name: label(library),
                colour,
                instructions: rows.iter().map(instructions).collect(),
                ratios: rows.iter().map(ratio).collect(),
            }
        });
        let name = |row: &&Row| format!("{} {}", row.subject.workload, row.subject.device);
        Self {
            title: title.to_owned(),
            series: series.filter(Series::has_points).collect(),
            rows: rows.iter().map(name).collect(),
        }
    }

    fn bottom(&self) -> f64 {
        TOP + ROW * rows_as_number(self.rows.len())
    }
}

fn rows_as_number(rows: usize) -> f64 {
    f64::from(u16::try_from(rows).unwrap_or(u16::MAX))
}

/// The middle of a row.
fn y(row: usize) -> f64 {
    TOP + ROW * (rows_as_number(row) + 0.5)
}

/// A logarithmic axis between powers of a base.
#[derive(Debug)]
struct Axis {
    left: f64,
    base: f64,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis with all values.
    fn new(left: f64, base: f64, values: impl Iterator<Item = f64> + Clone) -> Self {
        let exponents = values
            .filter(|value| *value > 0.0)
            .map(|value| value.log(base));
        let low = exponents.clone().fold(f64::INFINITY, f64::min).floor();
        let high = exponents.fold(f64::NEG_INFINITY, f64::max).ceil();
        let (low, high) = if low.is_finite() {
            (low, high)
        } else {
            (0.0, 1.0)
        };
        let high = if high > low { high } else { low + 1.0 };
        Self {
            left,
            base,
            low,
            high,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let exponent = value.max(f64::MIN_POSITIVE).log(self.base);
        self.left + HALF * ((exponent - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The powers of the base.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (base, low, high) = (self.base, self.low, self.high);
        let exponents = std::iter::successors(Some(low), |exponent| Some(exponent + 1.0));
        exponents
            .take_while(move |exponent| *exponent <= high)
            .map(move |exponent| base.powf(exponent))
    }

    fn draw(&self, formatter: &mut fmt::Formatter<'_>, title: &str, bottom: f64) -> fmt::Result {
        let middle = self.left + HALF / 2.0;
        text(formatter, middle, TOP - 10.0, "middle", title)?;
        for tick in self.ticks() {
            let x = self.x(tick);
            line(formatter, (x, TOP), (x, bottom), "#dddddd", 1.0)?;
            text(formatter, x, bottom + 16.0, "middle", &tick_label(tick))?;
        }
        Ok(())
    }
}

fn tick_label(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e3 => format!("{}k", value / 1e3),
        value => format!("{value}"),
    }
}

fn text(
    formatter: &mut fmt::Formatter<'_>,
    x: f64,
    y: f64,
    anchor: &str,
    text: &str,
) -> fmt::Result {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        formatter,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    )
}

fn line(
    formatter: &mut fmt::Formatter<'_>,
    from: (f64, f64),
    to: (f64, f64),
    colour: &str,
    width: f64,
) -> fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        formatter,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"/>"
    )
}

fn point(formatter: &mut fmt::Formatter<'_>, x: f64, y: f64, colour: &str) -> fmt::Result {
    writeln!(
        formatter,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"
    )
}

impl fmt::Display for Plot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bottom, right) = (self.bottom(), NAMES + HALF + GAP);
        let height = bottom + BOTTOM;
        writeln!(
            formatter,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
        )?;
        text(formatter, 10.0, 22.0, "start", &self.title)?;
        for (index, series) in self.series.iter().enumerate() {
            let x = NAMES + 110.0 * rows_as_number(index);
            point(formatter, x, 18.0, series.colour)?;
            text(formatter, x + 10.0, 22.0, "start", &series.name)?;
        }
        for (row, name) in self.rows.iter().enumerate() {
            text(formatter, NAMES - 10.0, y(row) + 4.0, "end", name)?;
        }
        let instructions = self
            .series
            .iter()
            .flat_map(|series| series.instructions.iter().flatten());
        let counts = Axis::new(NAMES, 10.0, instructions.copied());
        counts.draw(formatter, "instructions in user space", bottom)?;
        let ratios = self
            .series
            .iter()
            .flat_map(|series| series.ratios.iter().flatten());
        // 1 is always shown.
        let ends = ratios.flat_map(|ratio| [ratio.first, ratio.third]);
        let times = Axis::new(right, 2.0, ends.chain([0.95, 1.05]));
        times.draw(formatter, "time / time of C or TCP, with quartiles", bottom)?;
        let one = times.x(1.0);
        line(formatter, (one, TOP), (one, bottom), "#666666", 1.5)?;
        for series in &self.series {
            for (row, value) in series.instructions.iter().enumerate() {
                if let Some(value) = value {
                    point(formatter, counts.x(*value), y(row), series.colour)?;
                }
            }
            for (row, ratio) in series.ratios.iter().enumerate() {
                if let Some(ratio) = ratio {
                    let (first, third) = (times.x(ratio.first), times.x(ratio.third));
                    line(
                        formatter,
                        (first, y(row)),
                        (third, y(row)),
                        series.colour,
                        2.0,
                    )?;
                    point(formatter, times.x(ratio.median), y(row), series.colour)?;
                }
            }
        }
        writeln!(formatter, "</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_powers_around_all_values() {
        let axis = Axis::new(0.0, 10.0, [195.0, 7_317.0].into_iter());
        let ticks: Vec<_> = axis.ticks().map(tick_label).collect();
        assert_eq!(ticks, ["100", "1k", "10k"]);
        assert!(axis.x(100.0) < 1.0 && axis.x(10_000.0) > HALF - 1.0);
        let empty = Axis::new(0.0, 10.0, std::iter::empty());
        assert_eq!(empty.ticks().count(), 2);
    }

    #[test]
    fn a_plot_has_a_point_for_each_value() {
        let series = |name: &str, instructions, ratio| Series {
            name: name.to_owned(),
            colour: "red",
            instructions: vec![instructions],
            ratios: vec![ratio],
        };
        let quartiles = Quartiles {
            first: 0.5,
            median: 1.0,
            third: 2.0,
        };
        let plot = Plot {
            title: "Ids & events".to_owned(),
            rows: vec!["id rxe".to_owned()],
            series: vec![
                series("C 44", Some(3_694.0), Some(quartiles)),
                series("rdmacm", Some(1_800.0), None),
            ],
        };
        let svg = plot.to_string();
        // Three values, and two in the legend.
        assert_eq!(svg.matches("<circle").count(), 5);
        assert!(svg.contains("Ids &amp; events") && svg.ends_with("</svg>\n"));
    }
}
