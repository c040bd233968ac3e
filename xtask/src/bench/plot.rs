//! A plot of a group as SVG: what each library needs, and the ratios of times.

use std::fmt;

use crate::bench::page::{Quantity, label};
use crate::bench::results::{Results, Row};
use crate::bench::statistics::Quartiles;
use crate::bench::svg::{begin, coloured, legend, line, point, text, tick_label};

const ROW: f64 = 26.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 34.0;
/// Where the names of workloads end.
const NAMES: f64 = 190.0;
/// The width of each half.
const HALF: f64 = 300.0;
const GAP: f64 = 50.0;
const WIDTH: f64 = NAMES + HALF + GAP + HALF + 30.0;
/// One library's points.
#[derive(Debug)]
struct Series {
    name: String,
    colour: &'static str,
    /// The quantity of each row.
    values: Vec<Option<f64>>,
    /// Ratios of this library's times to its times.
    ratios: Vec<Option<Quartiles>>,
}

impl Series {
    fn has_points(&self) -> bool {
        let has_values = self.values.iter().any(Option::is_some);
        has_values || self.ratios.iter().any(Option::is_some)
    }
}

/// A plot.
#[derive(Debug)]
pub(crate) struct Plot {
    title: String,
    /// The title of the values.
    quantity: &'static str,
    rows: Vec<String>,
    series: Vec<Series>,
}

impl Plot {
    /// Of a quantity, which has a title.
    pub(crate) fn new(
        title: &str,
        quantity: (&'static str, Quantity),
        results: &Results,
        rows: &[&Row],
    ) -> Self {
        let (quantity, value) = quantity;
        let libraries = coloured(results).into_iter();
        let series = libraries.map(|(library, colour)| {
            let is_compared = results.compared().any(|compared| compared == library);
            let value = |row: &&Row| value(row, library).filter(|value| *value > 0.0);
            let ratio = |row: &&Row| row.ratio(library).filter(|_| is_compared);
            Series {
                name: label(library),
                colour,
                values: rows.iter().map(value).collect(),
                ratios: rows.iter().map(ratio).collect(),
            }
        });
        let name = |row: &&Row| format!("{} {}", row.subject.workload, row.subject.device);
        Self {
            title: title.to_owned(),
            quantity,
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

impl fmt::Display for Plot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bottom, right) = (self.bottom(), NAMES + HALF + GAP);
        let height = bottom + BOTTOM;
        begin(formatter, WIDTH, height)?;
        let names = self.series.iter();
        let names = names.map(|series| (series.name.as_str(), series.colour));
        legend(formatter, &self.title, NAMES, names)?;
        for (row, name) in self.rows.iter().enumerate() {
            text(formatter, NAMES - 10.0, y(row) + 4.0, "end", name)?;
        }
        let values = self
            .series
            .iter()
            .flat_map(|series| series.values.iter().flatten());
        let values = Axis::new(NAMES, 10.0, values.copied());
        values.draw(formatter, self.quantity, bottom)?;
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
            for (row, value) in series.values.iter().enumerate() {
                if let Some(value) = value {
                    point(formatter, values.x(*value), y(row), series.colour)?;
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
        let series = |name: &str, value, ratio| Series {
            name: name.to_owned(),
            colour: "red",
            values: vec![value],
            ratios: vec![ratio],
        };
        let quartiles = Quartiles {
            first: 0.5,
            median: 1.0,
            third: 2.0,
        };
        let plot = Plot {
            title: "Ids & events".to_owned(),
            quantity: "instructions in user space",
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
