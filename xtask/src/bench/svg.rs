//! The parts of a plot as SVG.

use std::fmt;

use crate::bench::results::{BARE, OWN, Results, TCP};

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

/// The libraries of a run, each with its colour.
pub(crate) fn coloured(results: &Results) -> Vec<(&str, &'static str)> {
    let mut c_index = 0;
    let libraries = results.libraries.iter().map(|library| {
        let colour = colour(library, c_index);
        let is_c = ![OWN, BARE, TCP].contains(&library.as_str());
        c_index += usize::from(is_c);
        (library.as_str(), colour)
    });
    libraries.collect()
}

/// The beginning, with a white background.
pub(crate) fn begin(formatter: &mut fmt::Formatter<'_>, width: f64, height: f64) -> fmt::Result {
    writeln!(
        formatter,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    )
}

/// The title, and what each colour means, from here to the right.
pub(crate) fn legend<'a>(
    formatter: &mut fmt::Formatter<'_>,
    title: &str,
    left: f64,
    series: impl Iterator<Item = (&'a str, &'a str)>,
) -> fmt::Result {
    text(formatter, 10.0, 22.0, "start", title)?;
    let mut x = left;
    for (name, colour) in series {
        point(formatter, x, 18.0, colour)?;
        text(formatter, x + 10.0, 22.0, "start", name)?;
        x += 110.0;
    }
    Ok(())
}

pub(crate) fn tick_label(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e3 => format!("{}k", value / 1e3),
        value => format!("{value}"),
    }
}

pub(crate) fn text(
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

pub(crate) fn line(
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

pub(crate) fn point(
    formatter: &mut fmt::Formatter<'_>,
    x: f64,
    y: f64,
    colour: &str,
) -> fmt::Result {
    writeln!(
        formatter,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"
    )
}
