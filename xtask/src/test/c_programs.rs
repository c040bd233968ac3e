//! Builds the C programs that tests compare with: with the system's rdma-core, and with the
//! newest release in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::host_packages;
use crate::process;
use crate::rdma_core::RdmaCore;
use crate::workspace::Workspace;

/// The folder of the system's libraries.
const SYSTEM_LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
/// The folder of the programs built with the newest release, and of its tools.
const NEWEST: &str = "newest-rdma-core";
/// The tools of the newest release that tests connect to.
const TOOLS: &[&str] = &["cmtime"];

/// The program that does the workloads of `tests/bench`.
const BENCH: &str = "rdmacm-c-bench";
/// The library whose file name has the release.
const LIBRDMACM: &str = "librdmacm.so.1";

/// A program and its source: a file or a folder in `tests/c`.
struct Program {
    name: &'static str,
    source: &'static str,
}

const fn program(name: &'static str, source: &'static str) -> Program {
    Program { name, source }
}

/// Programs that are built with both releases.
const WITH_BOTH: &[Program] = &[
    program("rdmacm-c-getaddrinfo", "getaddrinfo.c"),
    program("rdmacm-c-actor", "actor"),
    program(BENCH, "bench"),
];
/// Programs that are built only with the system's release.
const WITH_SYSTEM: &[Program] = &[
    program("rdmacm-c-peer", "peer.c"),
    program("rdmacm-c-acm", "acm.c"),
];

/// A release of librdmacm, and the program of `tests/c/bench` built with it.
#[derive(Clone, Debug)]
pub(crate) struct CLibrary {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

impl CLibrary {
    /// Builds the program with the system's release and with the newest one, if they differ.
    pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<Vec<Self>> {
        build(workspace)?;
        let programs = workspace.programs();
        let newest = RdmaCore::prepare(false).map(|newest| newest.lib()).ok();
        let mut folders = vec![(Some(PathBuf::from(SYSTEM_LIBRARIES)), programs.clone())];
        folders.push((newest, programs.join(NEWEST)));
        let mut libraries: Vec<Self> = Vec::new();
        for (lib, folder) in folders {
            let name = lib.and_then(|lib| release(&fs::read_link(lib.join(LIBRDMACM)).ok()?));
            let program = folder.join(BENCH);
            if let Some(name) = name.filter(|_| program.exists()) {
                if libraries.iter().all(|library| library.name != name) {
                    libraries.push(Self { name, program });
                }
            }
        }
        Ok(libraries)
    }
}

/// The release in the file name of the library: that of `librdmacm.so.1.3.44.0` is 44.
fn release(file: &Path) -> Option<String> {
    let numbers = file.file_name()?.to_str()?.split_once(".so.")?.1;
    numbers.split('.').nth(2).map(str::to_owned)
}

/// The release of the system's librdmacm, if it is installed.
pub(super) fn system_release() -> Option<u32> {
    let library = Path::new(SYSTEM_LIBRARIES).join(LIBRDMACM);
    release(&fs::read_link(library).ok()?)?.parse().ok()
}

/// Builds all of them. On a system other than a Debian release, also one with Debian's package
/// manager, prints what cannot be built; its tests are skipped.
pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<()> {
    for built in [with_system(workspace), with_newest(workspace)] {
        if let Err(error) = built {
            ensure!(host_packages::debian_codename().is_err(), "{error:#}");
            eprintln!("{error:#}");
        }
    }
    Ok(())
}

fn with_system(workspace: &Workspace) -> anyhow::Result<()> {
    replace(&workspace.programs(), |folder| {
        compile(workspace, folder, &[], WITH_BOTH)?;
        compile(workspace, folder, &[], WITH_SYSTEM)
    })
}

fn with_newest(workspace: &Workspace) -> anyhow::Result<()> {
    let folder = workspace.programs().join(NEWEST);
    let newest = match RdmaCore::prepare(false) {
        Ok(newest) => newest,
        Err(error) => {
            // Tests would compare with programs of another release.
            if folder.exists() {
                fs::remove_dir_all(&folder).with_context(|| format!("{error:#}"))?;
            }
            return Err(error);
        }
    };
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let lib = newest.lib().display().to_string();
    let flags = [
        format!("-I{}", newest.include().display()),
        format!("-L{lib}"),
        format!("-Wl,-rpath,{lib}"),
    ];
    replace(&folder, |folder| {
        for tool in TOOLS {
            let (from, to) = (newest.bin().join(tool), folder.join(tool));
            fs::copy(&from, to).with_context(|| format!("copy {}", from.display()))?;
        }
        compile(workspace, folder, &flags, WITH_BOTH)
    })
}

/// Builds programs beside those of a folder, and then moves each in the place of the one of its
/// name, which another run may start meanwhile.
fn replace(folder: &Path, build: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let beside = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(folder);
    let beside = beside.with_context(|| format!("build in {}", folder.display()))?;
    build(beside.path())?;
    for program in fs::read_dir(beside.path()).context("list the built programs")? {
        let program = program.context("list the built programs")?;
        fs::rename(program.path(), folder.join(program.file_name()))
            .with_context(|| format!("replace {}", program.path().display()))?;
    }
    Ok(())
}

fn compile(
    workspace: &Workspace,
    into: &Path,
    flags: &[String],
    programs: &[Program],
) -> anyhow::Result<()> {
    let sources = workspace.root.join("tests/c");
    for Program { name, source } in programs {
        let mut compiler = Command::new("gcc");
        compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]);
        compiler.args(flags).arg("-o").arg(into.join(name));
        compiler.args(files(&sources.join(source))?);
        process::run(compiler.args(["-lrdmacm", "-libverbs"]))?;
    }
    Ok(())
}

/// The C files of a program.
fn files(source: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if source.is_file() {
        return Ok(vec![source.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(source).with_context(|| format!("read {}", source.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_there_until_others_take_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let (program, other) = (folder.path().join("program"), folder.path().join("other"));
        fs::write(&program, "old").unwrap();
        fs::write(&other, "other").unwrap();
        let mut running = fs::File::open(&program).unwrap();
        let failed = replace(folder.path(), |built| {
            fs::write(built.join("program"), "a part").unwrap();
            assert_eq!(fs::read(&program).unwrap(), b"old");
            anyhow::bail!("it does not compile")
        });
        failed.unwrap_err();
        assert_eq!(fs::read(&program).unwrap(), b"old");
        replace(folder.path(), |built| {
            Ok(fs::write(built.join("program"), "new")?)
        })
        .unwrap();
        assert_eq!(fs::read(&program).unwrap(), b"new");
        assert_eq!(std::io::read_to_string(&mut running).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_release_is_the_third_number_of_the_file() {
        let release = |file| release(Path::new(file));
        assert_eq!(release("librdmacm.so.1.3.44.0").as_deref(), Some("44"));
        assert_eq!(release("/x/librdmacm.so.1.5.65.0").as_deref(), Some("65"));
        assert_eq!(release("librdmacm.so"), None);
    }
}
