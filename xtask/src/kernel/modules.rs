//! Which kernel modules a guest needs, in which order.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The modules that a guest needs, in the order in which they are loaded. The kernel requests
/// the checksum modules by name, so `modules.dep` does not list them as dependencies.
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

/// The modules of a folder (`/lib/modules/RELEASE`) and their dependencies.
#[derive(Debug)]
struct Index {
    /// The path of each module, by name.
    paths: HashMap<String, PathBuf>,
    /// All dependencies of each path.
    needs: HashMap<PathBuf, Vec<PathBuf>>,
}

/// The files to load, in order, relative to the folder. Modules that are built in or missing
/// are left out: the guest reports what it lacks.
pub(crate) fn to_load(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Ok(order(&Index::read(folder)?, WANTED))
}

/// Returns whether the folder has this module.
pub(crate) fn has(folder: &Path, module: &str) -> anyhow::Result<bool> {
    Ok(Index::read(folder)?.paths.contains_key(module))
}

impl Index {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("modules.dep");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self::parse(&text))
    }

    /// Parses `modules.dep`: `path: dependency dependency ...`.
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

/// Every wanted module after its dependencies, each once.
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

/// A module's name: the file name without extensions and with underscores.
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
    fn a_name_without_a_module_is_left_out() {
        assert_eq!(files(&["built_in", "udp"]), ["udp"]);
    }

    #[test]
    fn circular_dependencies_end() {
        let index = Index::parse("a.ko: b.ko\nb.ko: a.ko\n");
        assert_eq!(order(&index, &["a"]).len(), 2);
    }
}
