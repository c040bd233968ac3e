//! The arguments of commands that run guests.

use std::path::PathBuf;

use anyhow::ensure;

use super::{Choice, Kernel, Role};

/// Which kernel guests run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KernelArgs {
    /// The guests' kernel: `stock`, `new` or the path of a bzImage
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<Choice>,
    /// The modules (`/lib/modules/RELEASE`) of the kernel image
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
}

impl KernelArgs {
    /// Returns whether the user chose one.
    pub(crate) const fn is_chosen(&self) -> bool {
        self.kernel.is_some()
    }

    /// The chosen kernel, or that of `role`.
    pub(crate) fn choice_or(&self, role: Role) -> Choice {
        self.kernel.clone().unwrap_or(Choice::Role(role))
    }

    /// The chosen kernel, or all.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        match &self.kernel {
            Some(choice) => vec![choice.clone()],
            None => Role::ALL.map(Choice::Role).to_vec(),
        }
    }

    /// Returns one of these kernels, and builds it if it is not in the cache.
    pub(crate) fn prepare(&self, choice: &Choice) -> anyhow::Result<Kernel> {
        match choice {
            Choice::Role(role) => {
                ensure!(
                    self.modules.is_none(),
                    "`--modules` needs `--kernel` with the path of an image"
                );
                Kernel::prepare(*role, false)
            }
            Choice::Image(image) => Kernel::custom(image, self.modules.as_deref()),
        }
    }
}
