//! Whether what is built does without C: nothing links a C library, and the command
//! runs without any on its side.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm_init::Ending;
use serde::Deserialize;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::process;
use crate::test::totals::Totals;
use crate::workspace::{TARGET, Workspace};

/// What the command is made of, and what users of the library get.
const ROOTS: [&str; 2] = ["rdmacm", "rdmacm-cli"];
/// What Rust's own library needs of the system: libm where nothing is optimised.
const SYSTEM: [&str; 5] = ["linux-vdso", "libc", "libm", "libgcc_s", "ld-linux-x86-64"];
/// The kernel's numbers and structs, in Rust, and nothing else.
const NUMBERS: &str = "linux-raw-sys";
/// Two devices, under emulation.
const LONG: Duration = Duration::from_secs(180);

/// The checks that need no guest.
pub(crate) fn run(workspace: &Workspace, totals: &mut Totals) {
    totals.measure("without-c/crates", || check_crates(workspace));
    totals.measure("without-c/libraries", || check_libraries(workspace));
}

/// What `cargo metadata` says, as far as it matters.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    links: Option<String>,
}

fn check_crates(workspace: &Workspace) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--format-version", "1", "--all-features"]);
    cargo.args(["--filter-platform", TARGET]);
    let metadata: Metadata = serde_json::from_str(&process::output(&mut cargo)?)
        .context("understand cargo's metadata")?;
    // Metadata also lists what a feature would turn on that nobody turns on.
    let mut cargo = workspace.cargo();
    cargo.args(["tree", "--all-features", "--target", TARGET]);
    cargo.args(["--edges", "normal,build", "--prefix", "none"]);
    cargo.args(ROOTS.map(|root| ["--package", root]).as_flattened());
    let linking = metadata.linking(&process::output(&mut cargo)?);
    ensure!(linking.is_empty(), "these link C: {}", linking.join(", "));
    Ok(())
}

impl Metadata {
    /// Crates that link a C library, among those of a tree: a line each, which
    /// begins with name and version.
    fn linking(&self, tree: &str) -> Vec<&str> {
        let built: HashSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
        let linking = self.packages.iter().filter(|one| one.links_c());
        let built = linking.filter(|one| built.contains(&(&one.name, &one.version)));
        let mut names: Vec<_> = built.map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

impl Package {
    fn links_c(&self) -> bool {
        let named_so = self.name.ends_with("-sys") && self.name != NUMBERS;
        self.links.is_some() || named_so
    }
}

fn check_libraries(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.build_programs()?;
    let libraries = libraries(&workspace.programs().join("rdmacm"))?;
    let others = strangers(&libraries);
    ensure!(others.is_empty(), "it needs {}", others.join(", "));
    Ok(())
}

/// What the loader would load, a line each.
fn libraries(program: &Path) -> anyhow::Result<String> {
    process::output(Command::new("ldd").arg(program))
}

/// Libraries that are not the system's own.
fn strangers(libraries: &str) -> Vec<&str> {
    let names = libraries
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names = names.map(|path| path.rsplit('/').next().unwrap_or(path));
    names
        .filter(|name| {
            let stem = name.split('.').next().unwrap_or(name);
            !SYSTEM.contains(&stem)
        })
        .collect()
}

/// Builds the command without any library to be loaded; where it is.
pub(crate) fn build_static(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let program = workspace.build_static("rdmacm-cli", "rdmacm")?;
    let libraries = libraries(&program)?;
    ensure!(
        libraries.contains("statically linked"),
        "it needs {libraries}"
    );
    Ok(program)
}

/// Runs it in a guest, as in an empty container: its root directory holds nothing but
/// itself and the device nodes. It lists both devices, and is both sides of pings on each.
/// If the connection manager is a module, it is not loaded before: the first ping makes
/// the kernel load it.
pub(crate) fn run_static(guest: &Guest, program: &Path, step: &str, totals: &mut Totals) {
    totals.measure(&format!("{step}/static"), || plays(guest, program));
}

/// Loads modules from the kernel's own folder, `$1`, which the guest's root lacks. The
/// client tries until the server listens or has ended.
const SCRIPT: &str = r#"
set -e
if test -n "$1"; then
    printf '#!/bin/sh\nexec modprobe --dirname "%s" "$@"\n' "$1" > /tmp/modprobe
    chmod +x /tmp/modprobe
    echo /tmp/modprobe > /proc/sys/kernel/modprobe
    rmmod rdma_ucm
    test ! -e /dev/infiniband/rdma_cm
fi
image=$(mktemp -d)
mkdir -p "$image/dev/infiniband"
mount --bind /dev/infiniband "$image/dev/infiniband"
cp "$0" "$image/rdmacm"
chroot "$image" /rdmacm devices
for address in 10.71.1.1 10.71.2.1; do
    chroot "$image" /rdmacm ping --listen $address --persistent &
    until chroot "$image" /rdmacm ping $address --count 5 --interval 0 --validate; do
        test -d /proc/$!
    done
    kill $!
    wait $!
done
"#;

fn plays(guest: &Guest, program: &Path) -> anyhow::Result<()> {
    let modules = guest.kernel.modules_root()?;
    let folder = modules
        .as_deref()
        .map_or_else(Default::default, Path::to_string_lossy);
    let program = program.to_string_lossy();
    let argv = ["/bin/sh", "-c", SCRIPT, &program, &folder].map(str::to_owned);
    let machine = Machine {
        timeout: LONG,
        // The host's own folder is there already.
        shares: modules
            .into_iter()
            .filter(|root| root.parent().is_some())
            .collect(),
        ..Machine::default()
    };
    let (mut said, mut complaints) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| Ok(said.write_all(bytes)?),
        stderr: &mut |bytes| Ok(complaints.write_all(bytes)?),
    };
    let ending = guest::run(guest, &machine, &argv, None, &mut sinks)?;
    let said = String::from_utf8_lossy(&said);
    let complaints = String::from_utf8_lossy(&complaints);
    ensure!(ending == Ending::Exit(0), "{ending:?}\n{said}{complaints}");
    for words in ["rxe0", "siw0", "via rxe0: 5 pings", "via siw0: 5 pings"] {
        ensure!(said.contains(words), "no {words:?} in {said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_libraries_are_no_strangers() {
        let libraries = "\
\tlinux-vdso.so.1 (0x00007ffd1)
\tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f1)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)
";
        assert!(strangers(libraries).is_empty());
        let more = "\tlibibverbs.so.1 => /usr/lib/libibverbs.so.1 (0x00007f4)\n";
        assert_eq!(
            strangers(&format!("{libraries}{more}")),
            ["libibverbs.so.1"]
        );
    }

    #[test]
    fn a_crate_that_links_c_is_found_if_it_is_built() {
        let metadata = r#"{"packages": [
            {"name": "rdmacm", "version": "0.1.0", "links": null},
            {"name": "bound", "version": "2.0.1", "links": "ibverbs"},
            {"name": "c-sys", "version": "1.0.0", "links": null},
            {"name": "linux-raw-sys", "version": "0.9.0", "links": null},
            {"name": "of-another-age-sys", "version": "1.0.0", "links": null},
            {"name": "never-built", "version": "0.17.14", "links": "ring"}
        ]}"#;
        let metadata: Metadata = serde_json::from_str(metadata).unwrap();
        let tree = "\
rdmacm v0.1.0 (/somewhere/crates/rdmacm)
between v3.2.1
bound v2.0.1
c-sys v1.0.0 (*)

linux-raw-sys v0.9.0
of-another-age-sys v2.0.0
";
        assert_eq!(metadata.linking(tree), ["bound", "c-sys"]);
    }
}
