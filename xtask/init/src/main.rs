//! The first process of a test guest: makes the guest ready, runs one command
//! on the host's file system, reports how it ended and powers off.

mod command;
mod modules;
mod network;
mod ports;
mod root;
mod watch;

use std::fs;
use std::io::Write as _;
use std::process::Command;

use anyhow::Context as _;
use nix::sys::reboot::{RebootMode, reboot};
use rdmacm_init::{Job, PLAN_PATH, Plan, Report};

use self::ports::Ports;

fn main() {
    if let Err(error) = live() {
        // Nobody else to tell: the host shows the console's tail.
        drop(writeln!(std::io::stderr(), "rdmacm-init: {error:#}"));
    }
    // It returns only when it fails; the kernel then panics over the loss of
    // its first process, which the host reports.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

/// From the first mount to the last report.
fn live() -> anyhow::Result<()> {
    root::mount_kernel_files()?;
    let plan = fs::read(PLAN_PATH).with_context(|| format!("read {PLAN_PATH}"))?;
    let plan: Plan = serde_json::from_slice(&plan).context("understand the plan")?;
    let uevents = watch::Watch::uevents()?;
    modules::load(&plan.modules)?;
    let mut ports = Ports::open(&uevents)?;
    let release = nix::sys::utsname::uname().context("uname")?;
    ports.report(&Report::Up(
        release.release().to_string_lossy().into_owned(),
    ))?;
    ports.power_off_when_the_host_leaves()?;
    if let Some(job) = &plan.job {
        let report =
            run(job, &mut ports).unwrap_or_else(|error| Report::Failed(format!("{error:#}")));
        ports.report(&report)?;
    }
    ports.wait_for_the_host_to_leave();
    Ok(())
}

/// Makes everything the job needs, and does it.
fn run(job: &Job, ports: &mut Ports) -> anyhow::Result<Report> {
    root::mount_host(&job.shares)?;
    root::enter()?;
    nix::unistd::sethostname("guest").context("name the guest")?;
    network::make(&job.network)?;
    root::open_rdma_nodes()?;
    ports.report(&Report::Ready)?;

    let (program, arguments) = job.argv.split_first().context("the plan has no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&job.directory);
    command.env_clear().envs(job.environment.iter().cloned());
    match job.terminal {
        Some(size) => command::run_on_terminal(&command, size),
        None => command::run(command, job.driven, ports),
    }
}
