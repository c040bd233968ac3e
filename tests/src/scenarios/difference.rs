//! Intended differences from the C library.

/// One line of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The C library's line.
    pub c: String,
    /// This library's line instead; no line if it is empty.
    pub ours: String,
}

impl Difference {
    /// From `C | OURS | REASON`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('|').map(str::trim);
        let (c, ours, reason) = (fields.next()?, fields.next()?, fields.next()?);
        let is_valid = fields.next().is_none() && !c.is_empty() && !reason.is_empty();
        let (c, ours) = (c.to_owned(), ours.to_owned());
        is_valid.then_some(Self { c, ours })
    }

    /// Changes the C library's lines to those expected of this library. Fails if the C library
    /// has no such line.
    pub(super) fn apply(&self, lines: &mut Vec<String>) -> Result<(), String> {
        if !lines.contains(&self.c) {
            return Err(format!("the C library does not answer \"{}\"", self.c));
        }
        for line in &mut *lines {
            if *line == self.c {
                line.clone_from(&self.ours);
            }
        }
        lines.retain(|line| !line.is_empty());
        Ok(())
    }
}
