//! Durations as a histogram.

use super::{Latencies, last_of, time};
use crate::table::Table;

/// The longest bar.
const WIDTH: u64 = 40;

impl Latencies {
    /// One bar for each power of two, between the first and the last that have any.
    pub(crate) fn histogram(&self) -> String {
        let mut bars = vec![0_u64; u64::BITS as usize + 1];
        for (bucket, count) in self.buckets.iter().enumerate() {
            if let Some(bar) = bars.get_mut(power_of(last_of(bucket))) {
                *bar += count;
            }
        }
        let first = bars.iter().position(|count| *count > 0);
        let last = bars.iter().rposition(|count| *count > 0);
        let (Some(first), Some(last)) = (first, last) else {
            return String::new();
        };
        let longest = bars.iter().copied().max().unwrap_or(1);
        let mut table = Table::new(["BELOW", "COUNT", ""]);
        for (power, count) in bars.iter().enumerate().take(last + 1).skip(first) {
            let length = (u128::from(*count) * u128::from(WIDTH)).div_ceil(longest.into());
            let bar = "#".repeat(usize::try_from(length).unwrap_or_default());
            let below = 1_u128.checked_shl(power.try_into().unwrap_or(0));
            table.row([time(below.unwrap_or_default()), count.to_string(), bar]);
        }
        table.render()
    }
}

/// How many bits a value has: it is below that power of two.
fn power_of(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bars_are_as_long_as_there_are_samples() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.histogram(), "");
        for (nanoseconds, count) in [(1000, 4), (5000, 1)] {
            for _ in 0..count {
                latencies.add(Duration::from_nanos(nanoseconds));
            }
        }
        let histogram = latencies.histogram();
        let bars: Vec<_> = histogram
            .lines()
            .map(|line| line.matches('#').count())
            .collect();
        assert_eq!(bars, [0, 40, 0, 0, 10], "{histogram}");
        assert!(histogram.contains("1.02 µs  4"), "{histogram}");
    }
}
