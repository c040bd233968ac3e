//! The initramfs: the static init, kernel modules and the plan.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use cpio::newc::{Builder, ModeFileType, trailer};
use rdmacm_init::{PLAN_PATH, Plan};

use crate::kernel::Kernel;
use crate::workspace::Workspace;

/// Builds the init as a static program and returns its path.
pub(crate) fn build_init(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    workspace
        .build_static("rdmacm-init", "rdmacm-init", "dev")
        .context("build the guest's init")
}

/// Writes the archive, and the paths of its modules into the plan.
pub(crate) fn write(
    mut out: impl Write,
    init: &Path,
    kernel: &Kernel,
    mut plan: Plan,
) -> anyhow::Result<()> {
    add(&mut out, "init", 0o755, &read(init)?)?;
    directory(&mut out, "modules")?;
    for path in kernel.modules_to_load()? {
        let stem = path
            .file_name()
            .context("a module has a name")?
            .to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        let name = format!("modules/{stem}.ko");
        add(&mut out, &name, 0o644, &module(&path)?)?;
        plan.modules.push(Path::new("/").join(name));
    }
    let plan = serde_json::to_vec(&plan).context("write the plan")?;
    add(&mut out, PLAN_PATH.trim_start_matches('/'), 0o644, &plan)?;
    trailer(out).context("end the archive")?;
    Ok(())
}

/// Reads a module, decompressed.
fn module(path: &Path) -> anyhow::Result<Vec<u8>> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return read(path),
    };
    let output = Command::new(program)
        .arg("-dc")
        .arg(path)
        .output()
        .with_context(|| format!("start {program} to unpack {}", path.display()))?;
    ensure!(
        output.status.success(),
        "{program} -dc {}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read {}", path.display()))
}

fn add(out: &mut impl Write, name: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
    let size = u32::try_from(bytes.len()).context("an archive member of 4 GiB")?;
    let entry = Builder::new(name)
        .mode(mode)
        .set_mode_file_type(ModeFileType::Regular);
    let mut writer = entry.write(out, size);
    writer
        .write_all(bytes)
        .with_context(|| format!("archive {name}"))?;
    writer.finish().with_context(|| format!("archive {name}"))?;
    Ok(())
}

fn directory(out: &mut impl Write, name: &str) -> anyhow::Result<()> {
    let entry = Builder::new(name)
        .mode(0o755)
        .set_mode_file_type(ModeFileType::Directory);
    entry
        .write(out, 0)
        .finish()
        .with_context(|| format!("archive {name}"))?;
    Ok(())
}
