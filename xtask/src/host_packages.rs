//! Programs, headers and libraries that must be installed, and their Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use nix::unistd::Uid;

use crate::kernel::CHECKLIST;
use crate::process;

/// A file that must be installed, and the Debian package that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    what: What,
    package: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A program in `PATH` or in the system's folders.
    Program(&'static str),
    /// A header in the C compiler's own folders.
    Header(&'static str),
    /// A file in one of the linker's folders.
    Library(&'static str),
    /// A file by its path.
    File(&'static str),
}

use What::{File, Header, Library, Program};

const fn need(what: What, package: &'static str) -> Need {
    Need { what, package }
}

impl Need {
    /// To build a kernel module.
    pub(crate) const MODULE_BUILD: [Self; 7] = [
        need(Program("gcc"), "gcc"),
        need(Program("make"), "make"),
        need(Program("tar"), "tar"),
        need(Program("xz"), "xz-utils"),
        need(Program("depmod"), "kmod"),
        need(Library("libelf.so.1"), "libelf1"),
        need(Header("stdio.h"), "libc6-dev"),
    ];
    /// To build a kernel.
    pub(crate) const KERNEL_BUILD: [Self; 11] = [
        need(Program("gcc"), "gcc"),
        need(Program("make"), "make"),
        need(Program("flex"), "flex"),
        need(Program("bison"), "bison"),
        need(Program("bc"), "bc"),
        need(Program("perl"), "perl"),
        need(Program("tar"), "tar"),
        need(Program("xz"), "xz-utils"),
        need(Header("stdio.h"), "libc6-dev"),
        need(Header("gelf.h"), "libelf-dev"),
        need(Header("openssl/opensslv.h"), "libssl-dev"),
    ];
    /// To build rdma-core.
    pub(crate) const RDMA_CORE_BUILD: [Self; 7] = [
        need(Program("gcc"), "gcc"),
        need(Program("make"), "make"),
        need(Program("cmake"), "cmake"),
        need(Program("pkg-config"), "pkgconf"),
        need(Header("stdio.h"), "libc6-dev"),
        need(Header("libnl3/netlink/netlink.h"), "libnl-3-dev"),
        need(Library("libnl-route-3.so"), "libnl-route-3-dev"),
    ];
    /// To run a guest.
    pub(crate) const GUEST: [Self; 5] = [
        need(Program("qemu-system-x86_64"), "qemu-system-x86"),
        need(Program("ip"), "iproute2"),
        need(Program("rdma"), "iproute2"),
        need(Program("setsid"), "util-linux"),
        need(Program("setpriv"), "util-linux"),
    ];
    /// To compare with C headers: those of the kernel, and those of the C libraries for what the
    /// kernel does not export.
    pub(crate) const C_HEADERS: [Self; 5] = [
        need(Program("gcc"), "gcc"),
        need(Header("stdio.h"), "libc6-dev"),
        need(Header("rdma/rdma_user_cm.h"), "linux-libc-dev"),
        need(Header("infiniband/verbs.h"), "libibverbs-dev"),
        need(Header("rdma/rdma_cma.h"), "librdmacm-dev"),
    ];
    /// To run the guest suite: the C library with its drivers, which tests compare with, its
    /// tools, which tests connect to, programs that speak TCP, and a name server.
    pub(crate) const GUEST_SUITE: [Self; 13] = [
        need(Program("gcc"), "gcc"),
        need(Header("stdio.h"), "libc6-dev"),
        need(Header("rdma/rdma_cma.h"), "librdmacm-dev"),
        need(File("/etc/libibverbs.d/rxe.driver"), "ibverbs-providers"),
        need(Program("ucmatose"), "rdmacm-utils"),
        need(Program("strace"), "strace"),
        need(Program("dnsmasq"), "dnsmasq-base"),
        need(Program("openssl"), "openssl"),
        need(Program("iperf3"), "iperf3"),
        need(Program("nc.traditional"), "netcat-traditional"),
        need(Program("nc.openbsd"), "netcat-openbsd"),
        need(Program("curl"), "curl"),
        need(File("/usr/bin/python3"), "python3"),
    ];

    /// To count instructions and system calls.
    pub(crate) const BENCH: [Self; 2] = [
        need(Program("valgrind"), "valgrind"),
        need(Program("strace"), "strace"),
    ];

    /// Everything for kernels, guests and the suite, so that one command installs it.
    pub(crate) fn all() -> Vec<Self> {
        [
            &Self::MODULE_BUILD[..],
            &Self::KERNEL_BUILD,
            &Self::RDMA_CORE_BUILD,
            &Self::GUEST,
            &Self::C_HEADERS,
            &Self::GUEST_SUITE,
            &Self::BENCH,
        ]
        .concat()
    }

    fn is_installed(&self) -> bool {
        match self.what {
            Program(name) => program(name).is_some(),
            Header(name) => [
                "/usr/include",
                "/usr/include/x86_64-linux-gnu",
                "/usr/local/include",
            ]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists()),
            Library(name) => [
                "/usr/lib/x86_64-linux-gnu",
                "/lib/x86_64-linux-gnu",
                "/usr/lib64",
                "/usr/lib",
            ]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists()),
            File(path) => Path::new(path).exists(),
        }
    }

    fn name(&self) -> &'static str {
        match self.what {
            Program(name) | Header(name) | Library(name) | File(name) => name,
        }
    }
}

/// Installs what is missing, if this is Debian and the user is root. Otherwise the error names
/// the packages to install.
pub(crate) fn install(needs: &[Need]) -> anyhow::Result<()> {
    let missing: Vec<_> = needs.iter().filter(|need| !need.is_installed()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|need| need.name()).collect();
    let mut packages: Vec<_> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let (names, list) = (names.join(", "), packages.join(" "));
    if !is_debian() {
        bail!("missing here: {names} (Debian's packages are called {list})");
    }
    if !Uid::effective().is_root() {
        bail!(
            "missing here: {names}. Run: sudo apt-get update && \
             sudo apt-get install --no-install-recommends {list}"
        );
    }
    eprintln!("installing {list}, for {names}");
    apt_install(&packages)?;
    match needs.iter().find(|need| !need.is_installed()) {
        None => Ok(()),
        Some(need) => bail!(
            "{} is missing although {} is installed",
            need.name(),
            need.package
        ),
    }
}

fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    let install = || {
        let mut command = Command::new("apt-get");
        command
            .args(["-qq", "-y", "--no-install-recommends", "install"])
            .args(["-o", "DPkg::Lock::Timeout=300"])
            .args(packages);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        process::output(&mut command)
    };
    // The lists may be empty, or out of date.
    if install().is_err() {
        if let Err(error) = process::output(Command::new("apt-get").args(["-qq", "update"])) {
            eprintln!("  {error}");
        }
        install().context("install what is missing")?;
    }
    Ok(())
}

/// Returns whether missing packages can be installed.
pub(crate) fn is_debian() -> bool {
    program("apt-get").is_some()
}

/// Finds a program in `PATH` or in system folders that a user's `PATH` may lack.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The codename of the host's Debian release.
pub(crate) fn debian_codename() -> anyhow::Result<String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    match codename(&text) {
        Some(name) => Ok(name.to_owned()),
        None => bail!(
            "this system is not a Debian release, so there is no kernel to download for it: \
            use `--kernel PATH`.\n{CHECKLIST}"
        ),
    }
}

fn codename(os_release: &str) -> Option<&str> {
    let field = |name: &str| {
        os_release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches('"'))
    };
    (field("ID") == Some("debian"))
        .then(|| field("VERSION_CODENAME"))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_debian_release_has_a_codename() {
        assert_eq!(
            codename("ID=debian\nVERSION_CODENAME=bookworm\n"),
            Some("bookworm")
        );
        assert_eq!(
            codename("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"),
            None
        );
        assert_eq!(codename("PRETTY_NAME=\"Debian\"\nID=debian\n"), None);
        assert_eq!(codename(""), None);
    }

    #[test]
    fn an_installed_program_is_found() {
        assert!(program("sh").is_some());
        assert!(program("no-such-program-anywhere").is_none());
    }
}
