//! Chooses the newest version that can be built.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::kernel::cache::Record;

/// A kernel in the cache, and what it is.
pub(super) type Cached = (PathBuf, Record);

/// A version of a kernel, as the mirror has it.
pub(super) trait Candidate {
    /// The names of its packages' main one and its version, for people.
    fn name(&self) -> String;

    fn version(&self) -> &str;
}

/// Builds the first of `candidates` that can be built; the cached one need not be built again. A
/// download that fails ends this: an older kernel would hide that the newest one is missing.
pub(super) fn build_newest<C: Candidate, D>(
    candidates: impl IntoIterator<Item = C>,
    cached: Option<&Cached>,
    mut download: impl FnMut(&C) -> anyhow::Result<D>,
    mut make: impl FnMut(&C, D) -> anyhow::Result<Cached>,
) -> anyhow::Result<Cached> {
    let mut last = None;
    for candidate in candidates {
        // The cached kernel was built when a newer one failed to build.
        if let Some(cached) = cached.filter(|(_, record)| record.version == candidate.version()) {
            return Ok(cached.clone());
        }
        let name = candidate.name();
        eprintln!("{name}");
        let downloaded = download(&candidate).with_context(|| name.clone())?;
        match make(&candidate, downloaded) {
            Ok(built) => return Ok(built),
            Err(error) => {
                eprintln!("{name}: {error:#}");
                last = Some(error);
            }
        }
    }
    let last = last.context("the mirror has no version")?;
    Err(last.context("no version could be built"))
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    struct Version(&'static str);

    impl Candidate for Version {
        fn name(&self) -> String {
            format!("a kernel {}", self.0)
        }

        fn version(&self) -> &str {
            self.0
        }
    }

    fn kernel(version: &str) -> Cached {
        let record = Record {
            version: version.to_owned(),
            release: String::new(),
            fits: String::new(),
        };
        (PathBuf::from(version), record)
    }

    /// The version that is used, and the versions that were built, if only the `downloadable` ones
    /// can be downloaded and only the `buildable` ones built.
    fn newest(
        cached: Option<&str>,
        downloadable: &[&str],
        buildable: &[&str],
    ) -> (Option<String>, Vec<String>) {
        let mut tried = Vec::new();
        let cached = cached.map(kernel);
        let newest = build_newest(
            ["3", "2", "1"].map(Version),
            cached.as_ref(),
            |version| {
                let is_there = downloadable.contains(&version.0);
                is_there.then_some(()).context("it is not there")
            },
            |version, ()| {
                tried.push(version.0.to_owned());
                if !buildable.contains(&version.0) {
                    bail!("it does not build");
                }
                Ok(kernel(version.0))
            },
        );
        (newest.ok().map(|(_, record)| record.version), tried)
    }

    fn tried(version: Option<&str>, built: &[&str]) -> (Option<String>, Vec<String>) {
        let built = built.iter().map(|&one| one.to_owned());
        (version.map(str::to_owned), built.collect())
    }

    #[test]
    fn the_newest_that_builds_is_used() {
        let all = ["3", "2", "1"];
        assert_eq!(newest(None, &all, &all), tried(Some("3"), &["3"]));
        assert_eq!(newest(None, &all, &["1"]), tried(Some("1"), &all));
        assert_eq!(newest(None, &all, &[]), tried(None, &all));
    }

    #[test]
    fn the_cached_one_is_used_once_newer_ones_have_failed_to_build() {
        let all = ["3", "2", "1"];
        assert_eq!(newest(Some("3"), &[], &[]), tried(Some("3"), &[]));
        assert_eq!(newest(Some("2"), &all, &all), tried(Some("3"), &["3"]));
        assert_eq!(newest(Some("2"), &all, &[]), tried(Some("2"), &["3"]));
    }

    #[test]
    fn a_failed_download_leads_to_no_older_version() {
        let all = ["3", "2", "1"];
        for cached in [None, Some("2")] {
            assert_eq!(newest(cached, &["2", "1"], &all), tried(None, &[]));
        }
        assert_eq!(newest(None, &["3"], &["1"]), tried(None, &["3"]));
    }
}
