//! Runs a command or a shell in a guest.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::kernel::{KernelArgs, Role};
use crate::terminal;
use crate::workspace::Workspace;

/// Runs a command in a guest of the new kernel, or the one that `--kernel` chooses, on the host's
/// file system (changes stay in the guest's memory), and exits with its code: 128 + n for
/// signal n, 125 if the guest failed
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The timeout in seconds, boot included; a shell has none
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u32,
    /// The guest's memory, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u32,
    /// Exports another host folder that the guest would hide (it has its own /tmp, /run
    /// and /dev); may be repeated
    #[arg(long, value_name = "DIR")]
    share: Vec<PathBuf>,
    /// Runs a shell on this terminal instead of a command
    #[arg(long, conflicts_with = "command")]
    shell: bool,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "shell", value_name = "COMMAND")]
    command: Vec<String>,
}

/// The timeout of a guest with a shell, which is practically none.
const SHELL_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Runs the command or the shell.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let size = if args.shell {
        Some(terminal::size()?)
    } else {
        None
    };
    let workspace = Workspace::find()?;
    workspace.build_programs()?;
    let choice = args.kernel.choice_or(Role::New);
    let guest = Guest::prepare(&workspace, args.kernel.prepare(&choice)?)?;
    eprintln!("{}, by {}", guest.kernel, guest.accelerator);

    let shares = args
        .share
        .iter()
        .map(std::path::absolute)
        .collect::<Result<_, _>>();
    let machine = Machine {
        timeout: if args.shell {
            SHELL_TIMEOUT
        } else {
            Duration::from_secs(args.timeout.into())
        },
        memory: args.memory,
        shares: shares.context("find the shares")?,
        ..Machine::default()
    };
    let shell = ["/bin/bash".to_owned(), "-i".to_owned()];
    let command = if args.shell {
        &shell
    } else {
        args.command.as_slice()
    };
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            let mut out = std::io::stdout().lock();
            Ok(out.write_all(bytes).and_then(|()| out.flush())?)
        },
        stderr: &mut |bytes| Ok(std::io::stderr().write_all(bytes)?),
    };
    let ending = guest::run(&guest, &machine, command, size, &mut sinks)?;
    Ok(ExitCode::from(ending.code()))
}
