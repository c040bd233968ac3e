//! The C libraries and tools to compare with: those of the system and those of
//! rdma-core's newest release.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::built;
use crate::newer_commands;

/// The folder with the programs of the newest release, beside this program.
const FOLDER: &str = "newest-rdma-core";
const LIBRARY: &str = "librdmacm.so.1";
/// The library that a program preloads, beside that one.
const PRELOADED: &str = "rsocket/librspreload.so";
/// A program that is built with each installation.
pub(crate) const COMPARED_PROGRAM: &str = "rdmacm-c-actor";

/// An installation of rdma-core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RdmaCore {
    /// The system's installation.
    System,
    /// The newest release.
    Newest,
}

impl RdmaCore {
    /// The installations to compare with on this kernel: the newest only on the new
    /// kernel, whose ABI it knows.
    pub(crate) fn compared() -> &'static [Self] {
        if newer_commands::is_new() {
            &[Self::System, Self::Newest]
        } else {
            &[Self::System]
        }
    }

    /// A program of `tests/c`, built with it.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        match self {
            Self::System => built(name),
            Self::Newest => built(FOLDER).join(name),
        }
    }

    /// One of its own tools.
    pub(crate) fn tool(self, name: &str) -> PathBuf {
        match self {
            Self::System => Path::new("/usr/bin").join(name),
            Self::Newest => built(FOLDER).join(name),
        }
    }

    /// One of the system's tools, with the libraries of this installation.
    pub(crate) fn system_tool(self, name: &str) -> Command {
        let mut tool = Command::new("/usr/bin/stdbuf");
        tool.args(["-oL", "-eL"]).arg(Self::System.tool(name));
        if self == Self::Newest {
            let library = self.library(COMPARED_PROGRAM);
            tool.env("LD_LIBRARY_PATH", library.parent().unwrap());
        }
        tool
    }

    /// The installations to compare with that have a library for preloading, of at least this
    /// release.
    pub(crate) fn preloaded_since(release: u32) -> impl Iterator<Item = Self> {
        let compared = Self::compared().iter().copied();
        let compared = compared.filter(|one| one.program(COMPARED_PROGRAM).exists());
        let compared = compared.filter(|one| one.preloaded_library().exists());
        compared.filter(move |one| one.release(COMPARED_PROGRAM) >= release)
    }

    /// A program that uses rsockets instead of the sockets of TCP.
    pub(crate) fn preloaded(self, program: &str) -> Command {
        let mut program = Command::new(program);
        program.env("LD_PRELOAD", self.preloaded_library());
        program
    }

    fn preloaded_library(self) -> PathBuf {
        self.library(COMPARED_PROGRAM).with_file_name(PRELOADED)
    }

    /// The first part of a test's name, unless it is the system's.
    pub(crate) fn place(self, device: &str) -> String {
        match self {
            Self::System => device.to_owned(),
            Self::Newest => format!("{device}/{FOLDER}"),
        }
    }

    /// The release of the library with which a program of [`program`](Self::program)
    /// runs.
    pub(crate) fn release(self, program: &str) -> u32 {
        let file = self.library(program).canonicalize().unwrap();
        release_of(&file.file_name().unwrap().to_string_lossy()).unwrap()
    }

    /// The library with which a program of [`program`](Self::program) runs.
    fn library(self, program: &str) -> PathBuf {
        let listing = Command::new("ldd").arg(self.program(program)).output();
        let listing = String::from_utf8(listing.unwrap().stdout).unwrap();
        let library = listing.lines().find_map(|line| {
            let (name, path) = line.trim().split_once(" => ")?;
            (name == LIBRARY).then_some(path.split(' ').next()?)
        });
        PathBuf::from(library.unwrap())
    }
}

/// `librdmacm.so.1.3.44.0` is of release 44.
fn release_of(file: &str) -> Option<u32> {
    let numbers = file.strip_prefix(LIBRARY)?.strip_prefix('.')?;
    numbers.split('.').nth(1)?.parse().ok()
}
