//! The main job, shown: names resolve to RDMA addresses on real kernels.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context as _, anyhow, ensure};
use rdmacm_init::Ending;

use crate::guest::{self, Guest, Machine, Sinks};
use crate::host_packages::{self, Need};
use crate::kernel::{Choice, Kernel, Role};
use crate::workspace::Workspace;

/// Boots a kernel with a RoCE and an iWARP device and resolves names there
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Which kernel: `stock`, `new` or the path of a bzImage
    // The one that is there sooner: `new` has to be compiled.
    #[arg(long, value_name = "KERNEL", default_value = "stock")]
    kernel: Choice,
    /// Both `stock` and `new`
    #[arg(long, conflicts_with_all = ["kernel", "modules"])]
    all: bool,
    /// The modules (`/lib/modules/RELEASE`) of a kernel image of your own
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
}

/// A command line of the show, what it shows, its exit code, and what its
/// output must have.
struct Scene {
    about: &'static str,
    command: &'static str,
    code: u8,
    shows: &'static [&'static str],
}

const SCENES: [Scene; 8] = [
    Scene {
        about: "The RDMA devices of this machine",
        command: "rdmacm devices",
        code: 0,
        shows: &["rxe0  RoCE", "siw0  iWARP", "10.71.1.1", "fd71:2::1"],
    },
    Scene {
        about: "RoCE, IPv4: with its path record",
        command: "rdmacm resolve rxe 7471",
        code: 0,
        shows: &[
            "10.71.1.1:7471",
            "rxe0 port 1",
            "::ffff:10.71.1.1",
            "mtu 1024",
        ],
    },
    Scene {
        about: "RoCE, IPv6",
        command: "rdmacm resolve rxe6 7471",
        code: 0,
        shows: &["[fd71:1::1]:7471", "rxe0 port 1", "mtu 1024"],
    },
    Scene {
        about: "iWARP, IPv4: it has no path records",
        command: "rdmacm resolve siw 7471",
        code: 0,
        shows: &["10.71.2.1:7471", "siw0 port 1"],
    },
    Scene {
        about: "iWARP, IPv6",
        command: "rdmacm resolve siw6 7471",
        code: 0,
        shows: &["[fd71:2::1]:7471", "siw0 port 1"],
    },
    Scene {
        about: "One name, an address on each device",
        command: "rdmacm resolve pair 7471",
        code: 0,
        shows: &[
            "10.71.1.1:7471",
            "rxe0 port 1",
            "10.71.2.1:7471",
            "siw0 port 1",
        ],
    },
    Scene {
        about: "One name, an address of each family",
        command: "rdmacm resolve dual 7471",
        code: 0,
        shows: &["[fd71:1::1]:7471", "10.71.1.1:7471", "rxe0 port 1"],
    },
    Scene {
        about: "A destination that no RDMA device reaches, and why",
        command: "rdmacm resolve plain 7471",
        code: 1,
        shows: &["10.71.3.1:7471", "no RDMA device serves the interface"],
    },
];

/// Does what the arguments say.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut choices = vec![args.kernel.clone()];
    if args.all {
        choices = Role::ALL.map(Choice::Role).to_vec();
    }
    if host_packages::is_debian() {
        host_packages::install(&needs(&choices))?;
    }
    let prepare = |choice| {
        let kernel = Kernel::choose(choice, args.modules.as_deref())?;
        Guest::prepare(&workspace, kernel)
    };
    let mut first = Some(|| workspace.build_command());
    for choice in &choices {
        let guest = match first.take() {
            Some(build) => beside(build, || prepare(choice))?,
            None => prepare(choice)?,
        };
        println!("==== {}, by {}", guest.kernel, guest.accelerator);
        show(&guest).with_context(|| format!("on the {choice} kernel"))?;
    }
    println!(
        "Every command on {} kernel(s) ended as it should.",
        choices.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Builds while something else, which mostly fetches and unpacks, is prepared.
fn beside<T>(
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

/// What these kernels and their guests take, so that a machine is made ready in one go.
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

/// Plays every scene in one guest: what is to be seen comes on its standard
/// output, the exit codes on its standard error.
fn show(guest: &Guest) -> anyhow::Result<()> {
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script()];
    let (mut shown, mut codes) = (Vec::new(), Vec::new());
    let mut sinks = Sinks {
        stdout: &mut |bytes| {
            shown.extend_from_slice(bytes);
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
    check(&String::from_utf8_lossy(&shown), &codes)
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

/// Whether each command ended with the code that its scene has, and showed
/// what it is there to show.
fn check(shown: &str, codes: &str) -> anyhow::Result<()> {
    // Each scene begins with its heading.
    let shown: Vec<_> = shown.split("\n# ").skip(1).collect();
    let codes: Vec<_> = codes.lines().collect();
    ensure!(
        codes.len() == SCENES.len() && shown.len() == SCENES.len(),
        "{} exit codes and {} outputs of {} commands",
        codes.len(),
        shown.len(),
        SCENES.len()
    );
    let mut wrong = Vec::new();
    for (scene, (shown, code)) in SCENES.iter().zip(shown.into_iter().zip(codes)) {
        if code != scene.code.to_string() {
            wrong.push(format!(
                "`{}`: exit {code}, not {}",
                scene.command, scene.code
            ));
        }
        let missing = scene.shows.iter().filter(|text| !shown.contains(**text));
        wrong.extend(missing.map(|text| format!("`{}` does not show {text}", scene.command)));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a show that goes well prints.
    fn output() -> String {
        let scenes = SCENES.iter();
        scenes
            .map(|scene| format!("\n# {}\n{}\n", scene.about, scene.shows.join(" ")))
            .collect::<Vec<_>>()
            .concat()
    }

    #[test]
    fn a_wrong_exit_code_is_told() {
        assert!(check(&output(), "0\n0\n0\n0\n0\n0\n0\n1\n").is_ok());
        let error = check(&output(), "0\n0\n0\n0\n0\n0\n0\n0\n").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("rdmacm resolve plain"), "{error}");
        assert!(error.contains("not 1"), "{error}");
        assert!(check(&output(), "0\n").is_err());
    }

    #[test]
    fn an_output_that_lacks_something_is_told() {
        let shown = output().replacen("siw0 port 1", "rxe0 port 1", 1);
        let error = check(&shown, "0\n0\n0\n0\n0\n0\n0\n1\n").unwrap_err();
        assert!(error.to_string().contains("does not show siw0 port 1"));
    }
}
