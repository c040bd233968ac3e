//! Where this library is meant to answer otherwise than the C library.

/// One line of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// What the C library says.
    pub(super) c: String,
    /// What this library says instead; nothing where it is empty.
    pub(super) ours: String,
}

impl Difference {
    /// From `C's line | ours | why`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|').map(str::trim);
        let (c, ours, why) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = parts.next().is_none() && !c.is_empty() && !why.is_empty();
        let (c, ours) = (c.to_owned(), ours.to_owned());
        whole.then_some(Self { c, ours })
    }

    /// What this library answers where the C library answers `lines`.
    pub(super) fn apply(&self, lines: &mut Vec<String>) {
        for line in &mut *lines {
            if *line == self.c {
                line.clone_from(&self.ours);
            }
        }
        lines.retain(|line| !line.is_empty());
    }
}
