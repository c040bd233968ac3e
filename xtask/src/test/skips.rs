//! The expected skips, which `tests/skips.txt` lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::kernel::Choice;
use crate::test::c_programs;
use crate::workspace::Workspace;

/// The list.
const FILE: &str = "tests/skips.txt";

/// The machine that runs `xtask`, in the list.
const HOST: &str = "host";

/// Without it some tests of the host run, and with it are skipped.
const NODE: &str = "/dev/infiniband/rdma_cm";

/// The expected skips of a program, each with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Skips {
    /// These and no others, each once.
    Listed(BTreeMap<String, String>),
    /// Any skip: the features of the kernel are unknown.
    Any,
}

impl Skips {
    /// No skip is expected.
    pub(crate) const NONE: Self = Self::Listed(BTreeMap::new());

    /// The skips of the whole guest suite on a kernel.
    pub(crate) fn for_kernel(workspace: &Workspace, choice: &Choice) -> anyhow::Result<Self> {
        let Choice::Role(role) = choice else {
            return Ok(Self::Any);
        };
        Self::listed_for(workspace, role.as_str(), &["*", role.as_str()])
    }

    /// The skips on this host.
    pub(crate) fn for_host(workspace: &Workspace) -> anyhow::Result<Self> {
        if Path::new(NODE).exists() {
            Self::listed_for(workspace, HOST, &[HOST])
        } else {
            Ok(Self::NONE)
        }
    }

    /// Those of this machine, which the list has under one of these names.
    fn listed_for(workspace: &Workspace, machine: &str, names: &[&str]) -> anyhow::Result<Self> {
        let text = fs::read_to_string(workspace.root.join(FILE)).context(FILE)?;
        let listed = parse(&text, c_programs::system_release()).context(FILE)?;
        let on_this_machine = |(name, reason): (String, String)| {
            let (listed, rest) = name.split_once('/')?;
            names
                .contains(&listed)
                .then(|| (format!("{machine}/{rest}"), reason))
        };
        Ok(Self::Listed(
            listed.into_iter().filter_map(on_this_machine).collect(),
        ))
    }

    /// Those of the tests whose names contain `filter`.
    pub(crate) fn matching(mut self, filter: &str) -> Self {
        if let Self::Listed(listed) = &mut self {
            listed.retain(|name, _| name.contains(filter));
        }
        self
    }

    /// Removes a skip that occurred. Fails if the test is not listed, or with another reason.
    pub(super) fn take(&mut self, name: &str, reason: Option<&str>) -> anyhow::Result<()> {
        let Self::Listed(listed) = self else {
            return Ok(());
        };
        let reason = reason.unwrap_or_default();
        let expected = listed.remove(name);
        let expected =
            expected.with_context(|| format!("{FILE} does not list this skip: {reason}"))?;
        ensure!(
            expected == reason,
            "skipped because \"{reason}\", but {FILE} has the reason \"{expected}\""
        );
        Ok(())
    }

    /// The listed skips that have not occurred, each with an error text.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&str, String)> {
        let listed = match self {
            Self::Listed(listed) => Some(listed),
            Self::Any => None,
        };
        listed.into_iter().flatten().map(|(name, reason)| {
            let error = format!("{FILE} lists a skip that did not occur: {reason}");
            (name.as_str(), error)
        })
    }
}

/// Parses the list: a reason, and below it the names of the tests, indented. Those for other
/// releases of rdma-core than this one are left out.
fn parse(text: &str, release: Option<u32>) -> anyhow::Result<BTreeMap<String, String>> {
    let (mut listed, mut names) = (BTreeMap::new(), BTreeSet::new());
    let mut reason = None;
    for line in text.lines() {
        let name = line.trim();
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        if name == line.trim_end() {
            reason = Some(Reason::parse(name)?);
            continue;
        }
        let reason = reason.with_context(|| format!("{name} has no reason"))?;
        ensure!(names.insert(name), "{name} is listed twice");
        if reason.holds(release) {
            listed.insert(name.to_owned(), reason.text.to_owned());
        }
    }
    Ok(listed)
}

/// Why tests are skipped, and with which releases of rdma-core.
#[derive(Clone, Copy)]
struct Reason<'a> {
    text: &'a str,
    since: u32,
    until: u32,
}

impl<'a> Reason<'a> {
    fn parse(line: &'a str) -> anyhow::Result<Self> {
        let always = Self {
            text: line,
            since: 0,
            until: u32::MAX,
        };
        let Some((when, text)) = line.split_once(": ") else {
            return Ok(always);
        };
        let number = |number: &str| number.parse().with_context(|| format!("a release: {line}"));
        let always = Self { text, ..always };
        Ok(match when.split_once(' ') {
            Some(("since", release)) => Self {
                since: number(release)?,
                ..always
            },
            Some(("until", release)) => Self {
                until: number(release)?,
                ..always
            },
            _ => Self {
                text: line,
                ..always
            },
        })
    }

    /// Without a release, only what holds for each.
    fn holds(&self, release: Option<u32>) -> bool {
        match release {
            Some(release) => (self.since..=self.until).contains(&release),
            None => self.since == 0 && self.until == u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Role;

    #[test]
    fn names_are_listed_below_their_reason() {
        let listed = parse("# Why\none\n  a\n  b\n\ntwo: it is\n  c\n", None).unwrap();
        let pairs = [("a", "one"), ("b", "one"), ("c", "two: it is")];
        let pairs = pairs.map(|(name, reason)| (name.to_owned(), reason.to_owned()));
        assert_eq!(listed, pairs.into());
        assert!(parse("  a\n", None).is_err());
        assert!(parse("one\n  a\ntwo\n  a\n", None).is_err());
    }

    #[test]
    fn a_reason_may_hold_for_some_releases() {
        let text = "since 52: new\n  a\nuntil 50: old\n  b\nalways\n  c\n";
        for (release, names) in [
            (Some(50), "bc"),
            (Some(51), "c"),
            (Some(52), "ac"),
            (None, "c"),
        ] {
            let listed = parse(text, release).unwrap();
            assert_eq!(listed.keys().map(String::as_str).collect::<String>(), names);
            assert!(listed.values().all(|reason| !reason.contains(':')));
        }
        assert!(parse("since then: no\n  a\n", None).is_err());
    }

    #[test]
    fn a_skip_is_accepted_once_with_its_listed_reason() {
        let mut skips = Skips::Listed(parse("one\n  a\n  b\n  c\n", None).unwrap());
        skips.take("a", Some("one")).unwrap();
        skips.take("a", Some("one")).unwrap_err();
        skips.take("b", Some("two")).unwrap_err();
        skips.take("b", None).unwrap_err();
        skips.take("d", Some("one")).unwrap_err();
        assert_eq!(
            skips.missing().map(|(name, _)| name).collect::<Vec<_>>(),
            ["c"]
        );
        Skips::Any.take("a", None).unwrap();
        assert_eq!(Skips::Any.missing().count(), 0);
    }

    #[test]
    fn each_kernel_has_its_own_skips() {
        let workspace = Workspace::find().unwrap();
        let [stock, new] =
            Role::ALL.map(|role| Skips::for_kernel(&workspace, &Choice::Role(role)).unwrap());
        let (Skips::Listed(stock), Skips::Listed(new)) = (stock, new) else {
            panic!("the kernels are known");
        };
        assert!(stock.keys().all(|name| name.starts_with("stock/")));
        assert!(new.keys().all(|name| name.starts_with("new/")));
        assert!(stock.len() > new.len());
        let (some, all) = (
            Skips::Listed(stock.clone()).matching("measured"),
            stock.len(),
        );
        let Skips::Listed(some) = some else {
            panic!("they are listed");
        };
        assert!(some.len() < all && some.keys().all(|name| name.contains("measured")));
        let Skips::Listed(host) = Skips::listed_for(&workspace, HOST, &[HOST]).unwrap() else {
            panic!("they are listed");
        };
        assert!(!host.is_empty() && host.keys().all(|name| name.starts_with("host/")));
        let image = Choice::Image("/boot/bzImage".into());
        assert_eq!(Skips::for_kernel(&workspace, &image).unwrap(), Skips::Any);
    }
}
