//! Tables in Markdown, aligned so that they can be read as text.

use std::fmt;

/// A table. Its first columns are text, the others numbers.
#[derive(Debug)]
pub(crate) struct Table {
    /// How many columns are text.
    text: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this many columns of text.
    pub(crate) fn with_text(text: usize, heading: Vec<String>) -> Self {
        Self {
            text,
            rows: vec![heading],
        }
    }

    pub(crate) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Removes the columns without a number.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let columns = self.rows.first().map_or(0, Vec::len);
        for column in (self.text..columns).rev() {
            let cells = self.rows.iter().skip(1).filter_map(|row| row.get(column));
            if cells.into_iter().all(|cell| cell == NOTHING) {
                for row in &mut self.rows {
                    row.remove(column);
                }
            }
        }
        self
    }

    /// Removes the rows without a number.
    pub(crate) fn without_empty_rows(mut self) -> Self {
        let (text, heading) = (self.text, 1.min(self.rows.len()));
        let rows = self.rows.drain(heading..).collect::<Vec<_>>();
        let has_number = |row: &Vec<String>| row.iter().skip(text).any(|cell| cell != NOTHING);
        self.rows.extend(rows.into_iter().filter(has_number));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2 || self.rows.iter().all(|row| row.len() <= self.text)
    }
}

/// A cell without a value.
pub(crate) const NOTHING: &str = "–";

/// A number with few digits.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => NOTHING.to_owned(),
        Some(value) if value.abs() >= 100.0 || value.fract().abs() < 0.005 => thousands(value),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// A whole number with commas between thousands.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column < self.text {
                    write!(formatter, "| {cell:width$} ")?;
                } else {
                    write!(formatter, "| {cell:>width$} ")?;
                }
            }
            writeln!(formatter, "|")?;
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + 1);
                    let end = if column < self.text { "-" } else { ":" };
                    write!(formatter, "|{dashes}{end}")?;
                }
                writeln!(formatter, "|")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        let text = |value| number(Some(value));
        assert_eq!(text(1_234_567.8), "1,234,568");
        assert_eq!(text(100.4), "100");
        assert_eq!(text(6.0), "6");
        assert_eq!(text(12.34), "12.3");
        assert_eq!(text(0.5), "0.50");
        assert_eq!(text(-1200.0), "-1,200");
        assert_eq!(number(None), NOTHING);
    }

    #[test]
    fn columns_are_aligned_and_empty_columns_and_rows_left_out() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let mut table = Table::with_text(2, words("workload device C rdmacm"));
        assert!(table.is_empty());
        table.add(words("id rxe – 7,317"));
        let expected = "\
| workload | device | rdmacm |
|----------|--------|-------:|
| id       | rxe    |  7,317 |
";
        table.add(words("id siw – –"));
        let table = table.without_empty_columns().without_empty_rows();
        assert_eq!(table.to_string(), expected);
    }
}
