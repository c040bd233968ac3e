//! The main job, shown: names resolve to RDMA addresses on real kernels.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::kernel::{Choice, Kernel, Role};
use crate::process;
use crate::workspace::Workspace;

/// Boots each kernel with a RoCE and an iWARP device and resolves names there
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this kernel: `stock`, `new` or the path of a bzImage
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<Choice>,
    /// The modules (`/lib/modules/RELEASE`) of a kernel image of your own
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
}

/// A command line of the show, what it shows, and its exit code.
struct Scene {
    about: &'static str,
    command: &'static str,
    code: u8,
}

const fn scene(about: &'static str, command: &'static str, code: u8) -> Scene {
    Scene {
        about,
        command,
        code,
    }
}

const SCENES: [Scene; 8] = [
    scene("The RDMA devices of this machine", "rdmacm devices", 0),
    scene(
        "RoCE, IPv4: with its path record",
        "rdmacm resolve rxe 7471",
        0,
    ),
    scene("RoCE, IPv6", "rdmacm resolve rxe6 7471", 0),
    scene(
        "iWARP, IPv4: it has no path records",
        "rdmacm resolve siw 7471",
        0,
    ),
    scene("iWARP, IPv6", "rdmacm resolve siw6 7471", 0),
    scene(
        "One name, an address on each device",
        "rdmacm resolve pair 7471",
        0,
    ),
    scene(
        "One name, an address of each family",
        "rdmacm resolve dual 7471",
        0,
    ),
    scene(
        "A destination that no RDMA device reaches, and why",
        "rdmacm resolve plain 7471",
        1,
    ),
];

/// Does what the arguments say.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    process::run(
        workspace
            .cargo()
            .args(["build", "--quiet", "--package", "rdmacm-cli"]),
    )?;
    let choices = match &args.kernel {
        Some(choice) => vec![choice.clone()],
        None => Role::ALL.map(Choice::Role).to_vec(),
    };
    for choice in &choices {
        let kernel = Kernel::choose(choice, args.modules.as_deref())?;
        let guest = Guest::prepare(&workspace, kernel)?;
        println!("==== {}, by {}", guest.kernel, guest.accelerator);
        show(&guest).with_context(|| format!("on the {choice} kernel"))?;
    }
    println!(
        "Every command on {} kernel(s) ended as it should.",
        choices.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Plays every scene in one guest: what is to be seen comes on its standard
/// output, the exit codes on its standard error.
fn show(guest: &Guest) -> anyhow::Result<()> {
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script()];
    let mut codes = Vec::new();
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            let mut out = std::io::stdout().lock();
            Ok(out.write_all(bytes).and_then(|()| out.flush())?)
        },
        stderr: &mut |bytes| Ok(codes.write_all(bytes)?),
    };
    let ending = guest::run(guest, &Machine::default(), &argv, None, &mut sinks)?;
    let codes = String::from_utf8_lossy(&codes);
    ensure!(
        ending == Ending::Exit(0),
        "the show broke off: {ending:?}: {codes}"
    );
    check(&codes)
}

fn script() -> String {
    let mut script = String::new();
    for Scene { about, command, .. } in &SCENES {
        // Writing to a string never fails.
        let _ = writeln!(script, "printf '\\n# {about}\\n$ {command}\\n'");
        let _ = writeln!(
            script,
            "( {command} ) 2>&1; code=$?; echo $code >&2; [ $code -eq 0 ] || echo \"(exit code $code)\""
        );
    }
    script + "echo"
}

/// Whether each command ended with the code that its scene has.
fn check(codes: &str) -> anyhow::Result<()> {
    let codes: Vec<_> = codes.lines().collect();
    ensure!(
        codes.len() == SCENES.len(),
        "{} of {} exit codes",
        codes.len(),
        SCENES.len()
    );
    let wrong: Vec<_> = SCENES
        .iter()
        .zip(codes)
        .filter(|(scene, code)| *code != scene.code.to_string())
        .map(|(scene, code)| format!("`{}`: exit {code}, not {}", scene.command, scene.code))
        .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_exit_code_is_told() {
        assert!(check("0\n0\n0\n0\n0\n0\n0\n1\n").is_ok());
        let error = check("0\n0\n0\n0\n0\n0\n0\n0\n").unwrap_err().to_string();
        assert!(
            error.contains("rdmacm resolve plain") && error.contains("not 1"),
            "{error}"
        );
        assert!(check("0\n").is_err());
    }
}
