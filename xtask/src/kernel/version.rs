//! Compares versions of Debian packages.

use std::cmp::Ordering;

/// Debian's order of versions: digits compare by value, other text by character, and `~` sorts
/// before everything, even the end.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, rest_a) = a.split_once(':').unwrap_or(("0", a));
    let (epoch_b, rest_b) = b.split_once(':').unwrap_or(("0", b));
    let revision = |text| str::rsplit_once(text, '-').unwrap_or((text, "0"));
    let ((upstream_a, revision_a), (upstream_b, revision_b)) = (revision(rest_a), revision(rest_b));
    compare_part(epoch_a, epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let (text_a, text_b) = (take(&mut a, false), take(&mut b, false));
        let weights = |text: &str| text.chars().map(weight).chain([0]).collect::<Vec<_>>();
        let (number_a, number_b) = (take(&mut a, true), take(&mut b, true));
        let value = |digits: &str| digits.parse::<u64>().unwrap_or(0);
        let order = weights(text_a)
            .cmp(&weights(text_b))
            .then_with(|| value(number_a).cmp(&value(number_b)));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Cuts the leading run of digits, or of everything else, off a text.
fn take<'text>(text: &mut &'text str, digits: bool) -> &'text str {
    let end = text
        .find(|c: char| c.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    *text = rest;
    run
}

fn weight(character: char) -> i64 {
    let number = i64::from(u32::from(character));
    match character {
        '~' => -1,
        _ if character.is_ascii_alphabetic() => number,
        _ => number + 0x11_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_debian_does() {
        let sorted = [
            "6.1.187-1",
            "6.1.190-1~bpo12+1",
            "6.1.190-1",
            "6.1.190-2",
            "6.12~rc1-1",
            "6.12-1",
            "6.12.1-1",
            "7.2.9-1~bpo13+1",
            "7.2.12-1~bpo13+1",
            "1:1.0-1",
        ];
        for (index, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), index.cmp(&other), "{a} {b}");
            }
        }
    }
}
