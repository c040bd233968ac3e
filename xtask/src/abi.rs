//! Compares the ABI with C headers: as a task, and as a step of the tests.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use crate::abi_check::{self, HeaderSet};
use crate::host_packages::{self, Need};
use crate::kernel::{Kernel, Role};

/// Compares with all sets of headers and prints the whole table.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let sets = [
        installed()?,
        of_kernel(&Kernel::prepare(Role::New, false)?)?,
    ];
    let report = abi_check::check(&sets, &mut std::io::stdout().lock())?;
    Ok(if report.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Compares with one set of headers. The error has the table.
pub(crate) fn compare(set: HeaderSet) -> anyhow::Result<()> {
    let mut table = Vec::new();
    let report = abi_check::check(&[set], &mut table)?;
    ensure!(report.is_ok(), "{}", String::from_utf8_lossy(&table));
    Ok(())
}

/// The installed headers.
pub(crate) fn installed() -> anyhow::Result<HeaderSet> {
    host_packages::install(&Need::C_HEADERS)?;
    Ok(HeaderSet {
        label: "installed".to_owned(),
        include_dirs: Vec::new(),
    })
}

/// The headers of a kernel that `xtask` built.
pub(crate) fn of_kernel(kernel: &Kernel) -> anyhow::Result<HeaderSet> {
    host_packages::install(&Need::C_HEADERS)?;
    let folder = kernel
        .headers()
        .with_context(|| format!("the {kernel} has no headers"))?;
    Ok(HeaderSet {
        label: kernel.name.to_owned(),
        include_dirs: vec![folder],
    })
}
