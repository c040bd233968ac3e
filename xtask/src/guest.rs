//! A guest: boots a kernel and runs one command.

mod accelerator;
mod console;
mod initramfs;
mod interactive;
mod monitor;
mod network;
mod qemu;
mod run;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rdmacm_init::{Job, Plan, Share, WindowSize};

pub(crate) use self::accelerator::Accelerator;
pub(crate) use self::interactive::InteractiveGuest;
pub(crate) use self::network::WireEnd;
use self::qemu::Boot;
pub(crate) use self::run::{Sinks, run};
pub(crate) use self::wire::Wire;
use crate::host_packages::{self, Need};
use crate::kernel::{Cache, Kernel};
use crate::workspace::Workspace;
use crate::{process, rdma_core};

/// Folders of the host that file systems in memory hide in the guest.
const HIDDEN: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev"];

/// A guest's resources.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The timeout, boot included.
    pub(crate) timeout: Duration,
    /// Its memory in MiB.
    pub(crate) memory: u32,
    /// Host folders to export, in addition to the root, the checkout and its target.
    pub(crate) shares: Vec<PathBuf>,
    /// The end of the wires to which the guest is connected, if there are wires.
    pub(crate) wire_end: Option<WireEnd>,
    /// Whether the host writes to the command's standard input.
    pub(crate) interactive: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            memory: 1024,
            shares: Vec::new(),
            wire_end: None,
            interactive: false,
        }
    }
}

/// A kernel that is ready to boot on this host.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    workspace: Workspace,
    pub(crate) kernel: Kernel,
    init: PathBuf,
    pub(crate) accelerator: Accelerator,
}

impl Guest {
    /// Builds the init and chooses an accelerator.
    pub(crate) fn prepare(workspace: &Workspace, kernel: Kernel) -> anyhow::Result<Self> {
        host_packages::install(&Need::GUEST)?;
        let init = initramfs::build_init(workspace)?;
        let accelerator = Accelerator::choose(&Cache::open()?, &kernel, &init)?;
        Ok(Self {
            workspace: workspace.clone(),
            kernel,
            init,
            accelerator,
        })
    }

    /// The plan for one command.
    fn plan(
        &self,
        argv: &[String],
        machine: &Machine,
        terminal: Option<WindowSize>,
    ) -> anyhow::Result<Plan> {
        let directory = std::env::current_dir()?;
        let mut shown = vec![directory.clone()];
        shown.extend(rdma_core::folder()?);
        let job = Job {
            shares: share(&self.workspace, &machine.shares, &shown),
            argv: argv.to_vec(),
            environment: self.environment(terminal.is_some()),
            directory,
            terminal,
            interactive: machine.interactive,
            network: machine
                .wire_end
                .map_or_else(network::one_guest, network::two_guests),
        };
        Ok(Plan {
            modules: Vec::new(),
            job: Some(job),
        })
    }

    /// The configuration for QEMU.
    fn boot<'a>(&'a self, machine: &'a Machine, plan: &'a Plan) -> Boot<'a> {
        Boot {
            kernel: &self.kernel,
            init: &self.init,
            accelerator: self.accelerator,
            memory: machine.memory,
            mac_addresses: machine
                .wire_end
                .map_or(&[], |wire_end| wire_end.mac_addresses()),
            plan,
        }
    }

    /// The command's whole environment.
    fn environment(&self, terminal: bool) -> Vec<(String, String)> {
        let programs = self.workspace.programs();
        let path = format!("{}:{}", programs.display(), process::SYSTEM_PATH);
        let mut variables = vec![
            ("PATH", path),
            ("HOME", "/tmp".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("RDMACM_GUEST", "1".to_owned()),
            ("RDMACM_KERNEL", self.kernel.name.to_owned()),
        ];
        for name in ["RUST_BACKTRACE", "TERM"] {
            if let Ok(value) = std::env::var(name) {
                if terminal || name != "TERM" {
                    variables.push((name, value));
                }
            }
        }
        variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// The folders to export: the checkout, its target, the folders in `more`, and those in `shown`
/// that the guest would hide.
fn share(workspace: &Workspace, more: &[PathBuf], shown: &[PathBuf]) -> Vec<Share> {
    let mut paths: Vec<&Path> = vec![&workspace.root, &workspace.target];
    paths.extend(more.iter().map(PathBuf::as_path));
    paths.extend(shown.iter().map(PathBuf::as_path).filter(|path| {
        let hidden = HIDDEN.iter().any(|folder| path.starts_with(folder));
        hidden && !HIDDEN.contains(&path.to_string_lossy().as_ref())
    }));
    let mut shares: Vec<Share> = Vec::new();
    for path in paths {
        if !shares.iter().any(|share| path.starts_with(&share.path)) {
            let tag = format!("share{}", shares.len());
            shares.push(Share {
                tag,
                path: path.to_owned(),
            });
        }
    }
    // A share inside another one must be mounted after it.
    shares.sort_by_key(|share| share.path.components().count());
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(root: &str, target: &str, more: &[&str], shown: &str) -> Vec<String> {
        let workspace = Workspace {
            root: root.into(),
            target: target.into(),
            packages: Vec::new(),
        };
        let more: Vec<PathBuf> = more.iter().map(PathBuf::from).collect();
        share(&workspace, &more, &[shown.into()])
            .into_iter()
            .map(|share| share.path.display().to_string())
            .collect()
    }

    #[test]
    fn a_target_inside_the_checkout_needs_no_share() {
        assert_eq!(paths("/src/a", "/src/a/target", &[], "/src/a"), ["/src/a"]);
    }

    #[test]
    fn a_hidden_working_directory_is_shared() {
        assert_eq!(
            paths("/src/a", "/tmp/t", &[], "/tmp/w/x"),
            ["/src/a", "/tmp/t", "/tmp/w/x"]
        );
        assert_eq!(paths("/src/a", "/src/a/t", &[], "/home/w"), ["/src/a"]);
        assert_eq!(paths("/src/a", "/src/a/t", &[], "/tmp"), ["/src/a"]);
    }

    #[test]
    fn an_outer_share_is_mounted_first() {
        assert_eq!(
            paths("/tmp/a/b", "/tmp/t", &["/tmp/a"], "/"),
            ["/tmp/t", "/tmp/a", "/tmp/a/b"]
        );
    }
}
