//! The skips that are expected: `tests/skips.txt` names them.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, ensure};

use crate::kernel::Choice;
use crate::workspace::Workspace;

/// Where they are listed.
const FILE: &str = "tests/skips.txt";

/// The tests of a program that skip themselves, each with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Skips {
    /// These and no others, until each has been seen.
    Listed(BTreeMap<String, String>),
    /// Whatever a kernel that nobody knows may lack.
    Any,
}

impl Skips {
    /// No test may skip itself.
    pub(crate) const NONE: Self = Self::Listed(BTreeMap::new());

    /// Those of the whole guest suite on a kernel.
    pub(crate) fn of(workspace: &Workspace, choice: &Choice) -> anyhow::Result<Self> {
        let Choice::Role(role) = choice else {
            return Ok(Self::Any);
        };
        let text = fs::read_to_string(workspace.root.join(FILE)).context(FILE)?;
        let listed = parse(&text).context(FILE)?;
        let of_this = |(name, reason): (String, String)| {
            let (kernel, rest) = name.split_once('/')?;
            let is_meant = kernel == "*" || kernel == role.as_str();
            is_meant.then(|| (format!("{role}/{rest}"), reason))
        };
        Ok(Self::Listed(
            listed.into_iter().filter_map(of_this).collect(),
        ))
    }

    /// A test has skipped itself: whether it is a listed one that gives its listed reason.
    pub(super) fn see(&mut self, name: &str, reason: Option<&str>) -> anyhow::Result<()> {
        let Self::Listed(listed) = self else {
            return Ok(());
        };
        let reason = reason.unwrap_or_default();
        let expected = listed.remove(name);
        let expected = expected.with_context(|| format!("{FILE} has no such skip: {reason}"))?;
        ensure!(
            expected == reason,
            "{FILE} has another reason than \"{reason}\": {expected}"
        );
        Ok(())
    }

    /// Those that have not been seen.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&str, String)> {
        let listed = match self {
            Self::Listed(listed) => Some(listed),
            Self::Any => None,
        };
        listed.into_iter().flatten().map(|(name, reason)| {
            let complaint = format!("{FILE} says that it skips itself: {reason}");
            (name.as_str(), complaint)
        })
    }
}

/// Below each reason the names that it is true for, indented.
fn parse(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut listed = BTreeMap::new();
    let mut reason = None;
    for line in text.lines() {
        let name = line.trim();
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        if name == line.trim_end() {
            reason = Some(name);
            continue;
        }
        let reason = reason.with_context(|| format!("{name} has no reason"))?;
        let before = listed.insert(name.to_owned(), reason.to_owned());
        ensure!(before.is_none(), "{name} is listed twice");
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Role;

    #[test]
    fn names_stand_below_their_reason() {
        let listed = parse("# Why\none\n  a\n  b\n\ntwo, it is\n  c\n").unwrap();
        let pairs = [("a", "one"), ("b", "one"), ("c", "two, it is")];
        let pairs = pairs.map(|(name, reason)| (name.to_owned(), reason.to_owned()));
        assert_eq!(listed, pairs.into());
        assert!(parse("  a\n").is_err());
        assert!(parse("one\n  a\ntwo\n  a\n").is_err());
    }

    #[test]
    fn only_the_listed_may_be_seen_once_for_their_reason() {
        let mut skips = Skips::Listed(parse("one\n  a\n  b\n  c\n").unwrap());
        skips.see("a", Some("one")).unwrap();
        skips.see("a", Some("one")).unwrap_err();
        skips.see("b", Some("two")).unwrap_err();
        skips.see("b", None).unwrap_err();
        skips.see("d", Some("one")).unwrap_err();
        assert_eq!(
            skips.missing().map(|(name, _)| name).collect::<Vec<_>>(),
            ["c"]
        );
        Skips::Any.see("a", None).unwrap();
        assert_eq!(Skips::Any.missing().count(), 0);
    }

    #[test]
    fn each_kernel_has_its_own() {
        let workspace = Workspace::find().unwrap();
        let [stock, new] =
            Role::ALL.map(|role| Skips::of(&workspace, &Choice::Role(role)).unwrap());
        let (Skips::Listed(stock), Skips::Listed(new)) = (stock, new) else {
            panic!("the kernels are known");
        };
        assert!(stock.keys().all(|name| name.starts_with("stock/")));
        assert!(new.keys().all(|name| name.starts_with("new/")));
        assert!(stock.len() > new.len());
        let image = Choice::Image("/boot/bzImage".into());
        assert_eq!(Skips::of(&workspace, &image).unwrap(), Skips::Any);
    }
}
