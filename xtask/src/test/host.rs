//! Checks and tests on the host.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;

use crate::host_packages;
use crate::process;
use crate::test::harness::{Harness, NonZeroExit};
use crate::test::lines::Outcome;
use crate::test::skips::Skips;
use crate::test::suite;
use crate::test::totals::Totals;
use crate::workspace::Workspace;

/// How long to fuzz ibacm's client, in seconds: longer than `cargo test` does, shorter than
/// `cargo xtask soak`.
const FUZZ: &str = "RDMACM_FUZZ_SECONDS";
const FUZZ_SECONDS: u32 = 5;
const FUZZ_TEST: &str = "acm::tests::fuzz";
/// How long cargo may print nothing, beside the time for fuzzing: compiling a crate and each of
/// the other tests take a fraction of it on a slow machine.
const SILENCE: Duration = Duration::from_secs(1800);

/// Format, lints, documentation, dependencies, unit and doc tests.
pub(crate) fn run(workspace: &Workspace, totals: &mut Totals) {
    let step = |arguments: &[&str]| quiet(workspace.cargo().args(arguments));
    totals.measure("fmt", || step(&["fmt", "--all", "--check"]));
    let deny = ["--", "-D", "warnings"];
    let everything = ["clippy", "--workspace", "--all-targets"];
    totals.measure("clippy", || step(&[&everything[..], &deny].concat()));
    // The suite is not among "all targets", because `cargo test` must not run it.
    let suite = ["clippy", "--workspace", "--test", suite::TARGET];
    totals.measure("clippy/guest", || step(&[&suite[..], &deny].concat()));
    packages_alone(workspace, totals);
    totals.measure("features/bare", || without_verbs(workspace));
    let mut rustdoc = workspace.cargo();
    rustdoc
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    totals.measure("rustdoc", || quiet(&mut rustdoc));
    if host_packages::program("cargo-deny").is_some() {
        let offline = [
            "deny",
            "--workspace",
            "check",
            "bans",
            "licenses",
            "sources",
        ];
        totals.measure("cargo-deny", || step(&offline));
        advisories(workspace, totals);
    } else {
        let reason = "cargo-deny is not installed".to_owned();
        totals.add("cargo-deny", &Outcome::Skipped(Some(reason)));
    }
    unit_and_doc_tests(workspace, totals);
    benchmarks(workspace, totals);
}

/// Lints each published package as its users compile it, and with each of its features alone.
/// The workspace's packages enable each other's features and those of their dependencies.
fn packages_alone(workspace: &Workspace, totals: &mut Totals) {
    let lint = |arguments: &[&str]| {
        let mut cargo = workspace.cargo();
        cargo.arg("clippy").args(arguments);
        quiet(cargo.args(["--", "-D", "warnings"]))
    };
    let published = workspace.packages.iter();
    for package in published.filter(|package| package.is_published()) {
        let name = package.name.as_str();
        totals.measure(&format!("clippy/{name}"), || lint(&["--package", name]));
        let bare = ["--package", name, "--no-default-features"];
        for feature in package.features() {
            totals.measure(&format!("clippy/{name}/{feature}"), || {
                lint(&[&bare[..], &["--features", feature]].concat())
            });
        }
    }
    let bare = ["--package", "rdmacm", "--no-default-features"];
    totals.measure("clippy/rdmacm/bare", || lint(&bare));
}

/// Without default features, `rdmacm` must not depend on `rdmacm-verbs`.
fn without_verbs(workspace: &Workspace) -> anyhow::Result<()> {
    let mut tree = workspace.cargo();
    tree.args(["tree", "--package", "rdmacm", "--no-default-features"]);
    tree.args(["--edges", "normal", "--prefix", "none"]);
    let tree = process::output(&mut tree)?;
    ensure!(!tree.contains("rdmacm-verbs"), "{tree}");
    Ok(())
}

/// Known vulnerabilities, from a database on the network.
fn advisories(workspace: &Workspace, totals: &mut Totals) {
    let name = "cargo-deny/advisories";
    let mut cargo = workspace.cargo();
    let checked = quiet(cargo.args(["deny", "--workspace", "check", "advisories"]));
    match checked {
        Err(error)
            if error
                .to_string()
                .contains("failed to fetch advisory database") =>
        {
            let reason = "the advisory database cannot be reached".to_owned();
            totals.add(name, &Outcome::Skipped(Some(reason)));
        }
        checked => totals.step(name, checked),
    }
}

/// Runs a command and reports its output only if it fails.
fn quiet(command: &mut Command) -> anyhow::Result<()> {
    eprintln!("{} ...", process::line(command));
    let output = command
        .output()
        .with_context(|| format!("start {}", process::line(command)))?;
    if !output.status.success() {
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        bail!(
            "{}: {}\n{stdout}{stderr}",
            process::line(command),
            output.status
        );
    }
    Ok(())
}

fn unit_and_doc_tests(workspace: &Workspace, totals: &mut Totals) {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    let chosen = std::env::var(FUZZ).ok();
    if chosen.is_none() {
        cargo.env(FUZZ, FUZZ_SECONDS.to_string());
    }
    let fuzz = chosen.and_then(|seconds| seconds.parse().ok());
    let fuzz = fuzz.unwrap_or(FUZZ_SECONDS);
    match Skips::for_host(workspace) {
        Ok(skips) => run_harness(&mut cargo, silence(fuzz), skips, totals),
        Err(error) => totals.fail("host/skips", &format!("{error:#}")),
    }
}

fn silence(fuzz_seconds: u32) -> Duration {
    SILENCE + Duration::from_secs(fuzz_seconds.into())
}

/// Runs each benchmark once, without measuring it: one that does not work any more is found.
fn benchmarks(workspace: &Workspace, totals: &mut Totals) {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--bench", "*"]);
    totals.measure("benchmarks", || quiet(&mut cargo));
}

/// Fuzzes ibacm's client for this many seconds.
pub(crate) fn fuzz(workspace: &Workspace, seconds: u32, totals: &mut Totals) {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--package", "rdmacm-addrinfo", "--lib", FUZZ_TEST]);
    cargo.env(FUZZ, seconds.to_string());
    run_harness(&mut cargo, silence(seconds), Skips::NONE, totals);
}

/// Runs cargo's tests and counts their results. It is a failure if none ran, or if cargo prints
/// nothing for so long.
fn run_harness(cargo: &mut Command, silence: Duration, skips: Skips, totals: &mut Totals) {
    eprintln!("{} ...", process::line(cargo));
    let mut harness = Harness::new(totals, "host", "host").expect(skips);
    let end = run_tests(cargo, silence, &mut harness);
    harness.close(end);
}

/// Runs cargo with one pipe for both outputs, which keeps their order: cargo names the program
/// on standard error, and the program its tests on standard output.
fn run_tests(
    cargo: &mut Command,
    silence: Duration,
    harness: &mut Harness<'_>,
) -> anyhow::Result<()> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).context("pipe")?;
    cargo
        .stdin(Stdio::null())
        .stderr(write.try_clone().context("pipe")?)
        .stdout(write);
    let mut child = cargo.spawn().context("start cargo")?;
    // The command holds write ends of the pipe: drop it, so that the output ends.
    *cargo = Command::new("true");
    let mut output = File::from(read);
    let has_ended = read_output(&mut output, silence, harness)?;
    if !has_ended {
        process::kill_with_descendants(child.id()).context("kill cargo")?;
        // What they had written.
        read_output(&mut output, Duration::ZERO, harness)?;
    }
    let status = child.wait().context("wait for cargo")?;
    ensure!(
        has_ended,
        "cargo was killed: it had printed nothing for {} s",
        silence.as_secs()
    );
    if !status.success() {
        return Err(NonZeroExit(status.to_string()).into());
    }
    Ok(())
}

/// Reads until the end, or until nothing has come for so long. Returns whether it is the end.
fn read_output(
    output: &mut File,
    silence: Duration,
    harness: &mut Harness<'_>,
) -> anyhow::Result<bool> {
    let timeout = PollTimeout::try_from(silence).unwrap_or(PollTimeout::MAX);
    let mut buffer = [0; 8192];
    loop {
        let mut descriptors = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if poll(&mut descriptors, timeout).context("wait for output of cargo")? == 0 {
            return Ok(false);
        }
        match output.read(&mut buffer).context("read from cargo")? {
            0 => return Ok(true),
            length => harness.read(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_which_none_ran_are_a_failure() {
        for (output, expected) in [
            ("running 0 tests\n", "0 passed, 1 failed, 0 skipped"),
            (
                "running 1 test\ntest a ... ok\n",
                "1 passed, 0 failed, 0 skipped",
            ),
        ] {
            let mut totals = Totals::default();
            let mut printf = Command::new("printf");
            run_harness(printf.arg(output), SILENCE, Skips::NONE, &mut totals);
            assert_eq!(totals.to_string(), expected);
        }
    }

    #[test]
    fn tests_that_hang_are_killed_and_reported() {
        let script = "echo 'running 2 tests'; echo 'test a ... ok'; sleep 60 & sleep 60";
        let mut shell = Command::new("sh");
        let mut totals = Totals::default();
        // The shell starts within it, and its children outlast it.
        let silence = Duration::from_secs(10);
        run_harness(
            shell.args(["-c", script]),
            silence,
            Skips::NONE,
            &mut totals,
        );
        // The missing result, and the reason.
        assert_eq!(totals.to_string(), "1 passed, 2 failed, 0 skipped");
        let reason = totals.last_reason().unwrap();
        assert!(reason.contains("nothing for 10 s"), "{reason}");
    }
}
