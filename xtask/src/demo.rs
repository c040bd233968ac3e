//! A demonstration: names resolve to RDMA addresses on real kernels.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context as _, anyhow, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::host_packages::{self, Need};
use crate::kernel::{Choice, KernelArgs, Role};
use crate::workspace::Workspace;

/// Boots the stock kernel, or the one that `--kernel` chooses, with a RoCE and an iWARP device,
/// and resolves names there
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    kernel: KernelArgs,
    /// Both `stock` and `new`
    #[arg(long, conflicts_with_all = ["kernel", "modules"])]
    all: bool,
}

/// A command, its description, its exit code, and texts that its output must contain.
struct DemoCommand {
    description: &'static str,
    command: &'static str,
    code: u8,
    expected: &'static [&'static str],
}

const COMMANDS: [DemoCommand; 8] = [
    DemoCommand {
        description: "The RDMA devices of this machine",
        command: "rdmacm devices",
        code: 0,
        expected: &["rxe0  RoCE", "siw0  iWARP", "10.71.1.1", "fd71:2::1"],
    },
    DemoCommand {
        description: "RoCE, IPv4: with its path record",
        command: "rdmacm resolve rxe 7471",
        code: 0,
        expected: &[
            "10.71.1.1:7471",
            "rxe0 port 1",
            "::ffff:10.71.1.1",
            "mtu 1024",
        ],
    },
    DemoCommand {
        description: "RoCE, IPv6",
        command: "rdmacm resolve rxe6 7471",
        code: 0,
        expected: &["[fd71:1::1]:7471", "rxe0 port 1", "mtu 1024"],
    },
    DemoCommand {
        description: "iWARP, IPv4: it has no path records",
        command: "rdmacm resolve siw 7471",
        code: 0,
        expected: &["10.71.2.1:7471", "siw0 port 1"],
    },
    DemoCommand {
        description: "iWARP, IPv6",
        command: "rdmacm resolve siw6 7471",
        code: 0,
        expected: &["[fd71:2::1]:7471", "siw0 port 1"],
    },
    DemoCommand {
        description: "One name, an address on each device",
        command: "rdmacm resolve pair 7471",
        code: 0,
        expected: &[
            "10.71.1.1:7471",
            "rxe0 port 1",
            "10.71.2.1:7471",
            "siw0 port 1",
        ],
    },
    DemoCommand {
        description: "One name, an address of each family",
        command: "rdmacm resolve dual 7471",
        code: 0,
        expected: &["[fd71:1::1]:7471", "10.71.1.1:7471", "rxe0 port 1"],
    },
    DemoCommand {
        description: "A destination that no RDMA device reaches, and why",
        command: "rdmacm resolve plain 7471",
        code: 1,
        expected: &["10.71.3.1:7471", "no RDMA device serves the interface"],
    },
];

/// Runs the demonstration.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let choices = if args.all {
        args.kernel.choices()
    } else {
        // The new one has to be compiled, which takes minutes.
        vec![args.kernel.choice_or(Role::Stock)]
    };
    if host_packages::is_debian() {
        host_packages::install(&needs(&choices))?;
    }
    let prepare = |choice| Guest::prepare(&workspace, args.kernel.prepare(choice)?);
    let mut first = Some(|| workspace.build_command());
    for choice in &choices {
        let guest = match first.take() {
            Some(build) => build_beside(build, || prepare(choice))?,
            None => prepare(choice)?,
        };
        println!("==== {}, by {}", guest.kernel, guest.accelerator);
        run_commands(&guest).with_context(|| format!("on the {choice} kernel"))?;
    }
    println!(
        "Every command on {} kernel(s) had the expected result.",
        choices.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Runs the build beside a preparation that mostly downloads and unpacks.
fn build_beside<T>(
    build: impl FnOnce() -> anyhow::Result<()> + Send,
    prepare: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(build);
        let prepared = prepare();
        thread.join().map_err(|_| anyhow!("the build panicked"))??;
        prepared
    })
}

/// The packages for these kernels and their guests, so that one command installs them all.
fn needs(choices: &[Choice]) -> Vec<Need> {
    let kernels = choices.iter().map(|choice| match choice {
        Choice::Role(Role::Stock) => &Need::MODULE_BUILD[..],
        Choice::Role(Role::New) => &Need::KERNEL_BUILD,
        Choice::Image(_) => &[],
    });
    [&Need::GUEST[..]]
        .into_iter()
        .chain(kernels)
        .flatten()
        .copied()
        .collect()
}

/// Runs every command in one guest. Standard output has the commands' output, standard error
/// their exit codes.
fn run_commands(guest: &Guest) -> anyhow::Result<()> {
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script()];
    let (mut output, mut codes) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            output.extend_from_slice(bytes);
            let mut out = std::io::stdout().lock();
            Ok(out.write_all(bytes).and_then(|()| out.flush())?)
        },
        stderr: &mut |bytes| Ok(codes.write_all(bytes)?),
    };
    let ending = guest::run(guest, &Machine::default(), &argv, None, &mut sinks)?;
    let codes = String::from_utf8_lossy(&codes);
    ensure!(
        ending == Ending::Exit(0),
        "the demonstration failed: {ending:?}: {codes}"
    );
    check(&String::from_utf8_lossy(&output), &codes)
}

fn script() -> String {
    let mut script = String::new();
    for DemoCommand {
        description,
        command,
        ..
    } in &COMMANDS
    {
        // Writing to a string never fails.
        let _ = writeln!(script, "printf '\\n# {description}\\n$ {command}\\n'");
        let _ = writeln!(
            script,
            "( {command} ) 2>&1; code=$?; echo $code >&2; [ $code -eq 0 ] || echo \"(exit code $code)\""
        );
    }
    script + "echo"
}

/// Checks the exit code and the output of each command.
fn check(output: &str, codes: &str) -> anyhow::Result<()> {
    // Each command's output begins with a heading.
    let output: Vec<_> = output.split("\n# ").skip(1).collect();
    let codes: Vec<_> = codes.lines().collect();
    ensure!(
        codes.len() == COMMANDS.len() && output.len() == COMMANDS.len(),
        "{} exit codes and {} outputs of {} commands",
        codes.len(),
        output.len(),
        COMMANDS.len()
    );
    let mut wrong = Vec::new();
    for (command, (output, code)) in COMMANDS.iter().zip(output.into_iter().zip(codes)) {
        if code != command.code.to_string() {
            wrong.push(format!(
                "`{}`: exit {code}, not {}",
                command.command, command.code
            ));
        }
        let missing = command
            .expected
            .iter()
            .filter(|text| !output.contains(**text));
        wrong.extend(missing.map(|text| format!("`{}` does not show {text}", command.command)));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a successful run.
    fn output() -> String {
        let commands = COMMANDS.iter();
        commands
            .map(|command| {
                format!(
                    "\n# {}\n{}\n",
                    command.description,
                    command.expected.join(" ")
                )
            })
            .collect::<Vec<_>>()
            .concat()
    }

    #[test]
    fn a_wrong_exit_code_is_reported() {
        assert!(check(&output(), "0\n0\n0\n0\n0\n0\n0\n1\n").is_ok());
        let error = check(&output(), "0\n0\n0\n0\n0\n0\n0\n0\n").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("rdmacm resolve plain"), "{error}");
        assert!(error.contains("not 1"), "{error}");
        assert!(check(&output(), "0\n").is_err());
    }

    #[test]
    fn a_text_missing_from_the_output_is_reported() {
        let output = output().replacen("siw0 port 1", "rxe0 port 1", 1);
        let error = check(&output, "0\n0\n0\n0\n0\n0\n0\n1\n").unwrap_err();
        assert!(error.to_string().contains("does not show siw0 port 1"));
    }
}
