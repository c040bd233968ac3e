//! Checks that the library and the command need no C library.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use rdmacm_init::Ending;
use serde::Deserialize;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::process;
use crate::test::totals::Totals;
use crate::workspace::{TARGET, Workspace};

/// The packages whose dependencies are checked.
const ROOTS: [&str; 2] = ["rdmacm", "rdmacm-cli"];
/// The libraries that Rust's standard library needs; libm only without optimisation.
const SYSTEM: [&str; 5] = ["linux-vdso", "libc", "libm", "libgcc_s", "ld-linux-x86-64"];
/// A crate of the kernel's constants and structures in Rust, which links nothing.
const PURE_RUST: &str = "linux-raw-sys";

/// Runs the checks that need no guest.
pub(crate) fn run(workspace: &Workspace, totals: &mut Totals) {
    totals.measure("without-c/crates", || check_crates(workspace));
    totals.measure("without-c/libraries", || check_libraries(workspace));
}

/// The part of `cargo metadata` that is needed.
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
        .context("parse the output of cargo metadata")?;
    // The metadata also lists optional dependencies that are not enabled.
    let mut cargo = workspace.cargo();
    cargo.args(["tree", "--all-features", "--target", TARGET]);
    cargo.args(["--edges", "normal,build", "--prefix", "none"]);
    cargo.args(ROOTS.map(|root| ["--package", root]).as_flattened());
    let linking = metadata.linking(&process::output(&mut cargo)?);
    ensure!(
        linking.is_empty(),
        "these crates link C libraries: {}",
        linking.join(", ")
    );
    Ok(())
}

impl Metadata {
    /// The crates of a tree that link a C library. Each line of the tree begins with a crate's
    /// name and version.
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
        let is_sys = self.name.ends_with("-sys") && self.name != PURE_RUST;
        self.links.is_some() || is_sys
    }
}

fn check_libraries(workspace: &Workspace) -> anyhow::Result<()> {
    workspace.build_programs()?;
    let libraries = libraries(&workspace.programs().join("rdmacm"))?;
    let others = other_libraries(&libraries);
    ensure!(others.is_empty(), "the command needs {}", others.join(", "));
    Ok(())
}

/// The libraries that the loader would load, one per line.
fn libraries(program: &Path) -> anyhow::Result<String> {
    process::output(Command::new("ldd").arg(program))
}

/// The libraries that are not in [`SYSTEM`].
fn other_libraries(libraries: &str) -> Vec<&str> {
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

/// Builds the command as a static program and returns its path.
pub(crate) fn build_static(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let program = workspace.build_static("rdmacm-cli", "rdmacm", "dev")?;
    let libraries = libraries(&program)?;
    ensure!(
        libraries.contains("statically linked"),
        "the command needs {libraries}"
    );
    Ok(program)
}

/// Runs the static command in a guest, as in an empty container: its root directory has only
/// the command and the device nodes. The command lists both devices and runs both sides of
/// pings on each. If the connection manager is a module, it is not loaded before: the first
/// ping makes the kernel load it.
pub(crate) fn run_static(guest: &Guest, program: &Path, step: &str, totals: &mut Totals) {
    totals.measure(&format!("{step}/static"), || run_pings(guest, program));
}

/// Loads modules from the kernel's folder `$1`, because the guest's root has none. The client
/// starts once the server has printed that it listens: a client that connects while the server
/// starts to listen can break siw's listener.
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
server=$(mktemp)
trap 'cat "$server" >&2' EXIT
for address in 10.71.1.1 10.71.2.1; do
    : > "$server"
    chroot "$image" /rdmacm ping --listen $address --persistent 2> "$server" &
    until grep -q ': listening on ' "$server"; do
        test -d /proc/$!
    done
    chroot "$image" /rdmacm ping $address --count 5 --interval 0 --validate
    kill $!
    wait $!
done
"#;

fn run_pings(guest: &Guest, program: &Path) -> anyhow::Result<()> {
    let modules = guest.kernel.modules_root()?;
    let folder = modules
        .as_deref()
        .map_or_else(Default::default, Path::to_string_lossy);
    let program = program.to_string_lossy();
    let argv = ["/bin/sh", "-c", SCRIPT, &program, &folder].map(str::to_owned);
    let machine = Machine {
        // The host's own folder is in the guest's root.
        shares: modules
            .into_iter()
            .filter(|root| root.parent().is_some())
            .collect(),
        ..Machine::default()
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| Ok(stdout.write_all(bytes)?),
        stderr: &mut |bytes| Ok(stderr.write_all(bytes)?),
    };
    let ending = guest::run(guest, &machine, &argv, None, &mut sinks)?;
    let stdout = String::from_utf8_lossy(&stdout);
    let stderr = String::from_utf8_lossy(&stderr);
    ensure!(ending == Ending::Exit(0), "{ending:?}\n{stdout}{stderr}");
    for text in ["rxe0", "siw0", "via rxe0: 5 pings", "via siw0: 5 pings"] {
        ensure!(stdout.contains(text), "no {text:?} in {stdout}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_outside_the_system_list_are_reported() {
        let libraries = "\
\tlinux-vdso.so.1 (0x00007ffd1)
\tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f1)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)
";
        assert!(other_libraries(libraries).is_empty());
        let more = "\tlibibverbs.so.1 => /usr/lib/libibverbs.so.1 (0x00007f4)\n";
        assert_eq!(
            other_libraries(&format!("{libraries}{more}")),
            ["libibverbs.so.1"]
        );
    }

    #[test]
    fn a_crate_that_links_c_is_reported_if_it_is_built() {
        let metadata = r#"{"packages": [
            {"name": "rdmacm", "version": "0.1.0", "links": null},
            {"name": "bound", "version": "2.0.1", "links": "ibverbs"},
            {"name": "c-sys", "version": "1.0.0", "links": null},
            {"name": "linux-raw-sys", "version": "0.9.0", "links": null},
            {"name": "another-version-sys", "version": "1.0.0", "links": null},
            {"name": "never-built", "version": "0.17.14", "links": "ring"}
        ]}"#;
        let metadata: Metadata = serde_json::from_str(metadata).unwrap();
        let tree = "\
rdmacm v0.1.0 (/somewhere/crates/rdmacm)
between v3.2.1
bound v2.0.1
c-sys v1.0.0 (*)

linux-raw-sys v0.9.0
another-version-sys v2.0.0
";
        assert_eq!(metadata.linking(tree), ["bound", "c-sys"]);
    }
}
