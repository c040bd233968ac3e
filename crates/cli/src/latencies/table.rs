//! Durations as text.

use super::Summary;
use crate::table::Table;

impl Summary {
    /// As a table of one row.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(["MIN", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"]);
        let all = [
            self.min, self.mean, self.p50, self.p90, self.p99, self.p999, self.max,
        ];
        table.row(all.map(|value| time(value.into())));
        table.render()
    }
}

/// Nanoseconds in the largest unit that there is at least one of.
pub(crate) fn time(nanoseconds: u128) -> String {
    for (unit, size) in [("s", 1_000_000_000_u128), ("ms", 1_000_000), ("µs", 1_000)] {
        if nanoseconds >= size {
            let hundredths = nanoseconds * 100 / size;
            return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
        }
    }
    format!("{nanoseconds} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(12_345), "12.34 µs");
        assert_eq!(time(12_345_678), "12.34 ms");
        assert_eq!(time(1_500_000_000), "1.50 s");
    }
}
