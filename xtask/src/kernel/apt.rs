//! Downloads Debian packages with apt, which verifies them. The package lists are separate from
//! the system's, so that it needs no root and no other source interferes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::kernel::cache::Cache;
use crate::kernel::version::compare;
use crate::process;

/// Keys of the Debian archive, in the order of preference.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
];

/// apt with its own package lists.
#[derive(Debug)]
pub(crate) struct Apt {
    options: Vec<String>,
}

/// A package of the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The names of its dependencies; of alternatives, the first.
    pub(crate) depends: Vec<String>,
}

impl Apt {
    /// The host's own sources.
    pub(crate) fn for_host(cache: &Cache) -> anyhow::Result<Self> {
        let apt = Self::with_lists(cache, "host", &[])?;
        if let Err(error) = apt.update() {
            // Perhaps of a source that is not needed.
            eprintln!("  {error}");
        }
        Ok(apt)
    }

    /// Another suite from the host's mirror, verified with Debian's keys.
    pub(crate) fn for_suite(cache: &Cache, suite: &str) -> anyhow::Result<Self> {
        Self::for_package_type(cache, suite, "deb")
    }

    /// The source packages of another suite.
    pub(crate) fn for_sources_of_suite(cache: &Cache, suite: &str) -> anyhow::Result<Self> {
        Self::for_package_type(cache, suite, "deb-src")
    }

    fn for_package_type(cache: &Cache, suite: &str, kind: &str) -> anyhow::Result<Self> {
        let mirror = Self::for_host(cache)?.mirror()?;
        let keyring = KEYRINGS
            .into_iter()
            .find(|path| Path::new(path).exists())
            .context(
                "the keys of the Debian archive are missing: install debian-archive-keyring",
            )?;
        let folder = lists(cache, suite)?;
        let sources = folder.join("suite.sources");
        let entry = format!(
            "Types: {kind}\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {keyring}\n"
        );
        fs::write(&sources, entry).context("write a source entry")?;
        let options = [
            format!("Dir::Etc::sourcelist={}", sources.display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
        ];
        let apt = Self::with_lists(cache, suite, &options)?;
        apt.update()?;
        Ok(apt)
    }

    fn with_lists(cache: &Cache, name: &str, options: &[String]) -> anyhow::Result<Self> {
        let folder = lists(cache, name)?;
        let own = [
            format!("Dir::State::Lists={}", folder.join("lists").display()),
            format!("Dir::Cache={}", folder.join("cache").display()),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "APT::Sandbox::User=".to_owned(),
        ];
        Ok(Self {
            options: own.into_iter().chain(options.iter().cloned()).collect(),
        })
    }

    /// Updates the lists. Fails if a source does not answer, which apt only warns of by default.
    fn update(&self) -> anyhow::Result<()> {
        let mut command = self.command("apt-get");
        command.args(["-o", "APT::Update::Error-Mode=any", "-qq", "update"]);
        process::output(&mut command).map(drop)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for option in &self.options {
            command.arg("-o").arg(option);
        }
        command.env("LC_ALL", "C");
        command
    }

    /// The URI of the Debian archive that the host uses.
    fn mirror(&self) -> anyhow::Result<String> {
        let mut command = self.command("apt-get");
        command.args([
            "indextargets",
            "--format",
            "$(LABEL)|$(COMPONENT)|$(REPO_URI)",
        ]);
        command.arg("Created-By: Packages");
        let targets = process::output(&mut command)?;
        targets
            .lines()
            .find_map(|line| line.strip_prefix("Debian|main|"))
            .map(str::to_owned)
            .context("apt's sources have no Debian archive with readable lists")
    }

    /// The names of packages that begin with `pattern`, each once.
    pub(crate) fn names(&self, pattern: &str) -> anyhow::Result<Vec<String>> {
        let text = process::output(self.command("apt-cache").args(["pkgnames", pattern]))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Every version of a package, newest first.
    pub(crate) fn versions(&self, name: &str) -> anyhow::Result<Vec<Package>> {
        let shown = process::output(self.command("apt-cache").args(["show", "--", name]));
        let packages = newest_first(&shown.with_context(|| format!("find the package {name}"))?);
        if packages.is_empty() {
            bail!("the mirror has no package {name}");
        }
        Ok(packages)
    }

    /// The newest version of a source package.
    pub(crate) fn newest_source(&self, name: &str) -> anyhow::Result<String> {
        let mut command = self.command("apt-cache");
        command.args(["showsrc", "--only-source", "--", name]);
        let shown = process::output(&mut command);
        let packages = newest_first(&shown.with_context(|| format!("find the source {name}"))?);
        let newest = packages.into_iter().next();
        Ok(newest
            .with_context(|| format!("the mirror has no source {name}"))?
            .version)
    }

    /// The versions of a release and its updates, newest first. Versions of other suites are left
    /// out.
    pub(crate) fn versions_of_release(
        &self,
        name: &str,
        codename: &str,
    ) -> anyhow::Result<Vec<Package>> {
        let listed = process::output(self.command("apt-cache").args(["madison", "--", name]))?;
        let mut packages = self.versions(name)?;
        packages.retain(|package| {
            let mut lines = listed.lines();
            lines.any(|line| is_of_release(line, &package.version, codename))
        });
        if packages.is_empty() {
            bail!("the package lists of {codename} have no {name}");
        }
        Ok(packages)
    }

    /// Downloads a version of a package, which apt verifies with the signed lists.
    pub(crate) fn download(
        &self,
        name: &str,
        version: &str,
        into: &Path,
    ) -> anyhow::Result<PathBuf> {
        self.fetch(&["download"], name, version, into)
    }

    /// Downloads upstream's tar file of a source package.
    pub(crate) fn download_source(
        &self,
        name: &str,
        version: &str,
        into: &Path,
    ) -> anyhow::Result<PathBuf> {
        let subcommand = ["source", "--download-only", "--tar-only"];
        self.fetch(&subcommand, name, version, into)
    }

    /// Downloads into a folder of this version. What an interrupted run has left there, apt
    /// completes, or uses if it is whole.
    fn fetch(
        &self,
        subcommand: &[&str],
        name: &str,
        version: &str,
        into: &Path,
    ) -> anyhow::Result<PathBuf> {
        eprintln!("  download {name} {version}");
        let folder = into.join(name).join(version);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        remove_refused(&folder)?;
        let mut command = self.command("apt-get");
        command
            .arg("-q")
            .args(subcommand)
            .arg(format!("{name}={version}"))
            .current_dir(&folder)
            .stdout(std::io::stderr());
        process::run(&mut command)?;
        downloaded(&folder).with_context(|| format!("download {name} {version}"))
    }
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Returns whether apt has kept this file only to show it: its checksum is wrong.
fn is_refused(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "FAILED")
}

fn remove_refused(folder: &Path) -> anyhow::Result<()> {
    let files = files(folder)?;
    let mut refused = files.iter().filter(|file| is_refused(file));
    refused
        .try_for_each(fs::remove_file)
        .with_context(|| format!("empty {}", folder.display()))
}

/// The file that apt has downloaded into this folder.
fn downloaded(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut files = files(folder)?;
    files.retain(|file| !is_refused(file));
    match <[PathBuf; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) => bail!("{} has not one file: {files:?}", folder.display()),
    }
}

/// The paragraphs of `apt-cache show` and `showsrc`, newest first.
fn newest_first(shown: &str) -> Vec<Package> {
    let mut packages: Vec<_> = shown.split("\n\n").filter_map(parse).collect();
    packages.sort_by(|a, b| compare(&b.version, &a.version));
    packages.dedup();
    packages
}

/// Unpacks a package without installing it.
pub(crate) fn unpack(deb: &Path, into: &Path) -> anyhow::Result<()> {
    process::run(Command::new("dpkg-deb").arg("--extract").arg(deb).arg(into))
}

/// Returns whether a line like
/// `linux-image-amd64 | 6.1.9-1 | URI bookworm-security/main amd64 Packages` has this version
/// and a suite of this release.
fn is_of_release(line: &str, version: &str, codename: &str) -> bool {
    let mut columns = line.split('|').map(str::trim);
    let (_, listed, source) = (columns.next(), columns.next(), columns.next());
    let suite = source.and_then(|source| source.split_ascii_whitespace().nth(1));
    let suite = suite
        .and_then(|suite| suite.split('/').next())
        .unwrap_or_default();
    let own = ["", "-updates", "-security"];
    listed == Some(version)
        && suite
            .strip_prefix(codename)
            .is_some_and(|part| own.contains(&part))
}

fn lists(cache: &Cache, name: &str) -> anyhow::Result<PathBuf> {
    let folder = cache.path("apt").join(name);
    for part in ["lists/partial", "cache/archives/partial"] {
        let path = folder.join(part);
        fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
    }
    Ok(folder)
}

/// Parses a paragraph of `apt-cache show`.
fn parse(paragraph: &str) -> Option<Package> {
    let field = |name: &str| {
        paragraph
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let depends = field("Depends").unwrap_or_default().split(',');
    Some(Package {
        name: field("Package")?.to_owned(),
        version: field("Version")?.to_owned(),
        depends: depends
            .filter_map(|one| one.split_ascii_whitespace().next())
            .map(str::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_packages;

    #[test]
    fn a_paragraph_is_parsed() {
        let package = parse(
            "Package: linux-headers-6.1.0-9-amd64\nVersion: 6.1.9-1\n\
             Depends: linux-headers-6.1.0-9-common (= 6.1.9-1), linux-kbuild-6.1 (>= 6.1.9), a | b",
        );
        let package = package.unwrap();
        assert_eq!(package.version, "6.1.9-1");
        assert_eq!(
            package.depends,
            ["linux-headers-6.1.0-9-common", "linux-kbuild-6.1", "a"]
        );
    }

    #[test]
    fn the_newest_version_comes_first() {
        let shown = "Package: a\nVersion: 9.0-1\n\nPackage: a\nVersion: 65.0-1\n\n\
                     Package: a\nVersion: 9.0-1\n";
        let versions = newest_first(shown).into_iter().map(|one| one.version);
        assert_eq!(versions.collect::<Vec<_>>(), ["65.0-1", "9.0-1"]);
    }

    #[test]
    fn only_suites_of_the_release_match() {
        let of = |suite: &str| {
            let line = format!(" linux-image-amd64 | 6.1.9-1 | uri {suite}/main amd64 Packages");
            is_of_release(&line, "6.1.9-1", "bookworm")
        };
        assert!(of("bookworm") && of("bookworm-security") && of("bookworm-updates"));
        assert!(!of("bookworm-backports") && !of("sid") && !of("trixie"));
        assert!(!is_of_release(
            "x | 6.1.8-1 | uri bookworm/main",
            "6.1.9-1",
            "bookworm"
        ));
    }

    #[test]
    fn the_downloaded_file_is_the_only_one_that_apt_has_not_refused() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::write(folder.path().join(name), name).unwrap();
        let names = [
            "linux-source_6.1.9-1_all.deb.FAILED",
            "linux-source_6.1.9-1_all.deb",
            "another.FAILED",
        ];
        make(names[0]);
        assert!(downloaded(folder.path()).is_err());
        make(names[1]);
        make(names[2]);
        assert_eq!(
            downloaded(folder.path()).unwrap(),
            folder.path().join(names[1])
        );
        remove_refused(folder.path()).unwrap();
        assert_eq!(
            files(folder.path()).unwrap(),
            [folder.path().join(names[1])]
        );
        make("another");
        assert!(downloaded(folder.path()).is_err());
    }

    /// Nobody listens at port 1.
    #[test]
    fn a_source_that_does_not_answer_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("suite.sources");
        let entry = "Types: deb\nURIs: http://127.0.0.1:1/\nSuites: suite\nComponents: main\n";
        fs::write(&sources, entry).unwrap();
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        let path = |part: &str| folder.path().join(part).display().to_string();
        let apt = Apt {
            options: vec![
                format!("Dir::Etc::sourcelist={}", sources.display()),
                "Dir::Etc::sourceparts=/dev/null".to_owned(),
                format!("Dir::State::Lists={}", path("lists")),
                format!("Dir::Cache={}", path("cache")),
                "APT::Sandbox::User=".to_owned(),
                "Acquire::http::Proxy=false".to_owned(),
                "Acquire::Retries=0".to_owned(),
            ],
        };
        let error = apt.update().unwrap_err();
        // Elsewhere there is nothing that could ask it.
        let is_of_source = error.to_string().contains("127.0.0.1");
        assert!(is_of_source || !host_packages::is_debian(), "{error}");
    }

    #[test]
    fn a_paragraph_without_a_version_is_skipped() {
        assert_eq!(parse("Package: virtual"), None);
    }
}
