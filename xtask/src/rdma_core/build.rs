//! Builds and installs the needed parts of rdma-core from upstream's tar file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::host_packages::{self, Need};
use crate::kernel::Cache;
use crate::process;

/// The folder in the cache for the build.
pub(crate) const WORK: &str = "making-rdma-core";
/// The options of `cmake`, except for the paths.
pub(crate) const OPTIONS: &[&str] = &[
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_LIBDIR=lib",
    // The folder of ibacm's socket, as in Debian's packages.
    "-DCMAKE_INSTALL_RUNDIR=/run",
    "-DENABLE_STATIC=0",
    "-DENABLE_VALGRIND=0",
    "-DNO_MAN_PAGES=1",
    "-DNO_PYVERBS=1",
];
/// The targets: the libraries, the drivers' plug-ins, and a tool.
pub(crate) const TARGETS: &[&str] = &[
    "ibverbs",
    "rdmacm",
    "rspreload",
    "rxe-rdmav",
    "siw-rdmav",
    "cmtime",
];
/// The library that a program preloads to use rsockets, and its folder among the libraries.
const PRELOADED: &str = "librspreload.so";
const PRELOADED_FOLDER: &str = "rsocket";
/// The suffix of a driver's target, before the number of the drivers' interface.
const INTERFACE: &str = "-rdmav";

/// Builds and installs for `prefix`, in a folder that is moved there later.
pub(crate) fn build(cache: &Cache, tarball: &Path, prefix: &Path) -> anyhow::Result<PathBuf> {
    host_packages::install(&Need::RDMA_CORE_BUILD)?;
    let work = cache.empty(WORK)?;
    let made = cache.empty("made-rdma-core")?;
    let (source, build) = (work.join("source"), work.join("build"));
    for folder in [&source, &build] {
        fs::create_dir(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xf"]).arg(tarball);
    process::run(tar.arg("-C").arg(&source))?;

    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&build);
    configure.args(OPTIONS);
    for (option, folder) in [("PREFIX", ""), ("SYSCONFDIR", "etc"), ("RPATH", "lib")] {
        let folder = prefix.join(folder);
        configure.arg(format!("-DCMAKE_INSTALL_{option}={}", folder.display()));
    }
    process::logged("configure", &mut configure, &made.join("configure.log"))?;

    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut compile = Command::new("make");
    compile.arg("-C").arg(&build).arg(format!("-j{jobs}"));
    compile.args(targets(&build)?);
    process::logged("build", &mut compile, &made.join("build.log"))?;
    install(&build, &made)?;
    Ok(made)
}

/// The full names of the targets.
fn targets(build: &Path) -> anyhow::Result<Vec<String>> {
    let help = process::output(Command::new("make").arg("-C").arg(build).arg("help"))?;
    let known = help.lines().filter_map(|line| line.strip_prefix("... "));
    let known: Vec<_> = known.collect();
    let whole = |target: &&str| {
        let fits = |name: &&&str| match target.strip_suffix(INTERFACE) {
            Some(_) => name.starts_with(*target),
            None => *name == target,
        };
        let found = known.iter().find(fits);
        found
            .map(|name| (*name).to_owned())
            .with_context(|| format!("rdma-core's source has no target {target}"))
    };
    TARGETS.iter().map(whole).collect()
}

/// Installs the built files. `make install` would build everything.
fn install(build: &Path, prefix: &Path) -> anyhow::Result<()> {
    let drivers = prefix.join("lib/libibverbs");
    let configuration = prefix.join("etc/libibverbs.d");
    for folder in ["lib", "include", "bin"].map(|folder| prefix.join(folder)) {
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
    }
    let preloaded = prefix.join("lib").join(PRELOADED_FOLDER);
    for folder in [&drivers, &configuration, &preloaded] {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    for name in ["libibverbs", "librdmacm"] {
        library(&build.join("lib"), &prefix.join("lib"), name)?;
    }
    copy(
        &build.join("lib").join(PRELOADED),
        &preloaded.join(PRELOADED),
    )?;
    for driver in ["rxe", "siw"] {
        let file = configuration.join(format!("{driver}.driver"));
        fs::write(&file, format!("driver {driver}\n")).context("name a driver")?;
        let plugins = files(&build.join("lib"), &format!("lib{driver}{INTERFACE}"))?;
        ensure!(plugins.len() == 1, "{driver}'s plug-ins: {plugins:?}");
        for plugin in plugins {
            copy(&build.join("lib").join(&plugin), &drivers.join(plugin))?;
        }
    }
    for headers in ["infiniband", "rdma"] {
        let mut copy = Command::new("cp");
        copy.arg("-rL").arg(build.join("include").join(headers));
        process::run(copy.arg(prefix.join("include")))?;
    }
    copy(&build.join("bin/cmtime"), &prefix.join("bin/cmtime"))
}

/// Copies a library and the links to it.
fn library(from: &Path, to: &Path, name: &str) -> anyhow::Result<()> {
    for file in files(from, &format!("{name}.so"))? {
        match fs::read_link(from.join(&file)) {
            Ok(target) => symlink(target, to.join(file)).context("link a library")?,
            Err(_) => copy(&from.join(&file), &to.join(file))?,
        }
    }
    Ok(())
}

fn files(folder: &Path, beginning: &str) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(beginning) {
            names.push(name);
        }
    }
    Ok(names)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("copy {}", from.display()))?;
    Ok(())
}
