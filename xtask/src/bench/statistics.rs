//! Medians and quartiles.

use std::fmt;

/// The quartiles of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) first: f64,
    pub(crate) median: f64,
    pub(crate) third: f64,
}

impl Quartiles {
    /// Of these values; `None` of no value. Between two values it interpolates.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            first: quantile(&sorted, 1)?,
            median: quantile(&sorted, 2)?,
            third: quantile(&sorted, 3)?,
        })
    }
}

/// The value below which this many quarters of the values are.
fn quantile(sorted: &[f64], quarters: usize) -> Option<f64> {
    let steps = sorted.len().checked_sub(1)? * quarters;
    let (index, rest) = (steps / 4, steps % 4);
    let low = *sorted.get(index)?;
    let high = *sorted.get(index + 1).unwrap_or(&low);
    // At most 3.
    let rest = f64::from(u8::try_from(rest).unwrap_or_default());
    Some(low + (high - low) * rest / 4.0)
}

impl fmt::Display for Quartiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            median,
            third,
        } = self;
        write!(formatter, "{median:.2} ({first:.2}–{third:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_values_or_between_two() {
        let quartiles = |values: &[f64]| Quartiles::of(values.iter().copied());
        let of = |first, median, third| {
            Some(Quartiles {
                first,
                median,
                third,
            })
        };
        assert_eq!(quartiles(&[]), None);
        assert_eq!(quartiles(&[3.0]), of(3.0, 3.0, 3.0));
        assert_eq!(quartiles(&[4.0, 2.0]), of(2.5, 3.0, 3.5));
        assert_eq!(quartiles(&[5.0, 1.0, 4.0, 2.0, 3.0]), of(2.0, 3.0, 4.0));
        assert_eq!(
            quartiles(&[9.0, 1.0, 1.0, 1.0]).unwrap().to_string(),
            "1.00 (1.00–3.00)"
        );
        assert_eq!(
            quartiles(&[4.0, 2.0]).unwrap().to_string(),
            "3.00 (2.50–3.50)"
        );
    }
}
