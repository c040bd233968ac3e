//! Loads kernel modules.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};

/// Loads modules in the given order.
pub(crate) fn load(modules: &[PathBuf]) -> anyhow::Result<()> {
    for path in modules {
        let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("load module {}", path.display()));
            }
        }
    }
    Ok(())
}
