//! Which kernel modules a guest needs, in which order.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// What a guest stands on, in the order it is loaded where the kernel has it
/// as modules. The checksums are asked for by name, so no file lists them as
/// dependencies.
const WANTED: &[&str] = &[
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
    "virtio_net",
    "veth",
    "dummy",
    "bonding",
    "sch_prio",
    "sch_netem",
    "cls_u32",
    "crc32_generic",
    "crc32c_generic",
    "libcrc32c",
    "ib_umad",
    "ib_uverbs",
    "rdma_ucm",
    "rdma_rxe",
    "siw",
];

/// A kernel's module folder (`/lib/modules/RELEASE`), read.
#[derive(Debug)]
struct Index {
    /// Module name to its path.
    paths: HashMap<String, PathBuf>,
    /// Path to the paths it depends on, all of them.
    needs: HashMap<PathBuf, Vec<PathBuf>>,
}

/// The files to load, in order, relative to the folder. What the kernel has
/// built in, or not at all, is left out: the guest says what it misses.
pub(crate) fn to_load(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Ok(order(&Index::read(folder)?, WANTED))
}

/// Whether this is a module of the folder.
pub(crate) fn has(folder: &Path, module: &str) -> anyhow::Result<bool> {
    Ok(Index::read(folder)?.paths.contains_key(module))
}

impl Index {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("modules.dep");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self::parse(&text))
    }

    /// Reads `modules.dep`: `path: dependency dependency ...`.
    fn parse(text: &str) -> Self {
        let mut index = Self {
            paths: HashMap::new(),
            needs: HashMap::new(),
        };
        for (path, needs) in text.lines().filter_map(|line| line.split_once(':')) {
            let path = PathBuf::from(path);
            index.paths.insert(name(&path), path.clone());
            index.needs.insert(
                path,
                needs.split_ascii_whitespace().map(PathBuf::from).collect(),
            );
        }
        index
    }
}

/// Every wanted module after those it depends on, each once.
fn order(index: &Index, wanted: &[&str]) -> Vec<PathBuf> {
    let mut done = HashSet::new();
    let mut order = Vec::new();
    for path in wanted.iter().filter_map(|name| index.paths.get(*name)) {
        visit(index, path, &mut done, &mut order);
    }
    order
}

fn visit(index: &Index, path: &Path, done: &mut HashSet<PathBuf>, order: &mut Vec<PathBuf>) {
    if done.insert(path.to_owned()) {
        for need in index.needs.get(path).into_iter().flatten() {
            visit(index, need, done, order);
        }
        order.push(path.to_owned());
    }
}

/// A module's name: the file's, without compression and with underscores.
fn name(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    file.split('.').next().unwrap_or_default().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "\
kernel/net/rxe.ko.xz: kernel/core/ib-core.ko.xz kernel/net/udp.ko.xz
kernel/core/ib-core.ko.xz: kernel/base.ko
kernel/net/udp.ko.xz:
kernel/base.ko:
";

    fn files(wanted: &[&str]) -> Vec<String> {
        let paths = order(&Index::parse(DEP), wanted);
        paths.iter().map(|path| name(path)).collect()
    }

    #[test]
    fn dependencies_come_first_and_once() {
        assert_eq!(
            files(&["rxe", "ib_core"]),
            ["base", "ib_core", "udp", "rxe"]
        );
    }

    #[test]
    fn what_is_no_module_is_left_out() {
        assert_eq!(files(&["built_in", "udp"]), ["udp"]);
    }

    #[test]
    fn a_circle_ends() {
        let index = Index::parse("a.ko: b.ko\nb.ko: a.ko\n");
        assert_eq!(order(&index, &["a"]).len(), 2);
    }
}
