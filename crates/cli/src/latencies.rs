//! How long things took.

use std::time::Duration;

use serde::Serialize;

mod histogram;
mod table;

pub(crate) use table::time;

/// Sub-buckets of each power of two: a bucket is narrower than 1/64 of its values.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 6;
/// Values below `PARTS` have a bucket each, then come the powers of two.
const BUCKETS: usize = (64 - PART_BITS as usize + 1) * PARTS;

/// Any number of durations; percentiles are accurate to 1/64.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    least: u64,
    most: u64,
}

/// What is said of them, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
            count: 0,
            sum: 0,
            least: u64::MAX,
            most: 0,
        }
    }

    pub(crate) fn add(&mut self, duration: Duration) {
        let value = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// `None` of none.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let mean = self.sum.checked_div(self.count.into())?;
        Some(Summary {
            min: self.least,
            mean: u64::try_from(mean).unwrap_or(u64::MAX),
            p50: self.reached_by(500),
            p90: self.reached_by(900),
            p99: self.reached_by(990),
            p999: self.reached_by(999),
            max: self.most,
        })
    }

    /// What so many of a thousand do not exceed.
    fn reached_by(&self, of_a_thousand: u64) -> u64 {
        let wanted = u128::from(self.count) * u128::from(of_a_thousand);
        let mut so_far = 0_u128;
        for (bucket, count) in self.buckets.iter().enumerate() {
            so_far += u128::from(*count);
            if so_far * 1000 >= wanted && *count > 0 {
                return last_of(bucket).clamp(self.least, self.most);
            }
        }
        self.most
    }
}

fn bucket_of(value: u64) -> usize {
    // Beyond the last bit that distinguishes the parts of a power of two.
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    let parts = value >> shift;
    // Twice as many parts as there are, at most; the upper half is a group further.
    let parts = usize::try_from(parts).unwrap_or(usize::MAX);
    shift as usize * PARTS + parts
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket / PARTS).saturating_sub(1);
    let parts = (bucket - shift * PARTS) as u128;
    let next = (parts + 1) << shift;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_narrow_and_the_next_begins_behind_it() {
        for value in (0..5000).chain([1 << 40, (1 << 40) + 12345, u64::MAX - 1, u64::MAX]) {
            let last = last_of(bucket_of(value));
            assert!(value <= last, "{value} {last}");
            assert!(last - value <= value / 64, "{value} {last}");
            if last < u64::MAX {
                assert_eq!(bucket_of(last + 1), bucket_of(last) + 1);
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_of_all_samples() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.summary(), None);
        for value in 1..=1000 {
            latencies.add(Duration::from_micros(value));
        }
        let summary = latencies.summary();
        let about = |value: u64, expected: u64| value.abs_diff(expected) <= expected / 64;
        let summary = summary.expect("there are samples");
        assert_eq!((summary.min, summary.max), (1_000, 1_000_000));
        assert_eq!(summary.mean, 500_500);
        assert!(about(summary.p50, 500_000), "{summary:?}");
        assert!(about(summary.p99, 990_000), "{summary:?}");
        assert!(about(summary.p999, 999_000), "{summary:?}");
    }

    #[test]
    fn a_percentile_is_the_first_value_that_enough_do_not_exceed() {
        let mut latencies = Latencies::new();
        for value in 1..=10 {
            latencies.add(Duration::from_nanos(value));
        }
        let summary = latencies.summary().expect("there are samples");
        assert_eq!((summary.p50, summary.p90), (5, 9));
        assert_eq!((summary.p99, summary.p999), (10, 10));
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let mut latencies = Latencies::new();
        latencies.add(Duration::from_nanos(123_456_789));
        let summary = latencies.summary().expect("there is a sample");
        assert_eq!(summary.p50, 123_456_789);
        assert_eq!(summary.p999, 123_456_789);
    }
}
