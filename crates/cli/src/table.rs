//! Text in aligned columns.

/// Rows of cells, aligned by column; the last column is as long as it wants.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(titles: [&str; N]) -> Self {
        let mut table = Self::default();
        table.row(titles);
        table
    }

    pub(crate) fn row<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(|cell| cell.to_string()).collect();
        self.rows.push(cells);
    }

    pub(crate) fn render(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths);
            let padded: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// The last cell of a row may run on over the columns that it lacks.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| {
                    let is_last = column + 1 == row.len();
                    row.get(column).filter(|_| !is_last || row.len() == columns)
                });
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_a_short_row_runs_on() {
        let mut table = Table::new(["A", "LONG", "C"]);
        table.row(["one", "2", "3"]);
        table.row(["x", "a reason that is longer than its column"]);
        assert_eq!(
            table.render(),
            "A    LONG  C\none  2     3\nx    a reason that is longer than its column\n"
        );
    }
}
