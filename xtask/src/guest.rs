//! A guest: one boot of one kernel, for one command.

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
pub(crate) use self::network::Station;
use self::qemu::Boot;
pub(crate) use self::run::{Sinks, run};
pub(crate) use self::wire::Wire;
use crate::host_packages::{self, Need};
use crate::kernel::{Cache, Kernel};
use crate::workspace::Workspace;
use crate::{process, rdma_core};

/// What the guest hides under file systems in memory.
const HIDDEN: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev"];

/// What a guest is given, apart from its kernel.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// How long it may live, boot and all.
    pub(crate) timeout: Duration,
    /// Its memory in MiB.
    pub(crate) memory: u32,
    /// Host folders to show it, beyond the root, the checkout and its target.
    pub(crate) shares: Vec<PathBuf>,
    /// Its place on the wires to another guest, where it is on them.
    pub(crate) station: Option<Station>,
    /// Whether the host writes its command's standard input.
    pub(crate) driven: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            memory: 1024,
            shares: Vec::new(),
            station: None,
            driven: false,
        }
    }
}

/// A kernel that can be booted here: everything it takes is there.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    workspace: Workspace,
    pub(crate) kernel: Kernel,
    init: PathBuf,
    pub(crate) accelerator: Accelerator,
}

impl Guest {
    /// Makes the init, and finds out how QEMU runs best here.
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
            driven: machine.driven,
            network: machine
                .station
                .map_or_else(network::standard, network::wired),
        };
        Ok(Plan {
            modules: Vec::new(),
            job: Some(job),
        })
    }

    /// What QEMU is told of it.
    fn boot<'a>(&'a self, machine: &'a Machine, plan: &'a Plan) -> Boot<'a> {
        Boot {
            kernel: &self.kernel,
            init: &self.init,
            accelerator: self.accelerator,
            memory: machine.memory,
            cards: machine.station.map_or(&[], |station| station.cards()),
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
            ("RDMACM_KERNEL_RELEASE", self.kernel.release.clone()),
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

/// The folders to export: the checkout and its target always, what the user adds, and
/// what is to be `shown` where the guest would hide it.
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
    // A share inside another is mounted after it.
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
    fn outer_shares_are_mounted_first() {
        assert_eq!(
            paths("/tmp/a/b", "/tmp/t", &["/tmp/a"], "/"),
            ["/tmp/t", "/tmp/a", "/tmp/a/b"]
        );
    }
}
