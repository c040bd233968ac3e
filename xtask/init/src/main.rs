//! The first process of a test guest: sets the guest up, runs one command on the host's file
//! system, reports how it ended and powers off.

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
    if let Err(error) = run_plan() {
        // There may be no port yet: the host shows the end of the console.
        drop(writeln!(std::io::stderr(), "rdmacm-init: {error:#}"));
    }
    // `reboot` returns only if it fails. The kernel then panics because its first process
    // ends, which the host reports.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

/// Runs the plan from the first mount to the last report.
fn run_plan() -> anyhow::Result<()> {
    root::mount_kernel_files()?;
    let plan = fs::read(PLAN_PATH).with_context(|| format!("read {PLAN_PATH}"))?;
    let plan: Plan = serde_json::from_slice(&plan).context("parse the plan")?;
    let uevents = watch::Watch::uevents()?;
    modules::load(&plan.modules)?;
    let mut ports = Ports::open(&uevents)?;
    let release = nix::sys::utsname::uname().context("uname")?;
    ports.report(&Report::Up(
        release.release().to_string_lossy().into_owned(),
    ))?;
    ports.power_off_on_host_disconnect()?;
    if let Some(job) = &plan.job {
        let report =
            run_job(job, &mut ports).unwrap_or_else(|error| Report::Failed(format!("{error:#}")));
        ports.report(&report)?;
    }
    ports.wait_for_host_disconnect();
    Ok(())
}

/// Sets up what the job needs, and runs it.
fn run_job(job: &Job, ports: &mut Ports) -> anyhow::Result<Report> {
    root::mount_host(&job.shares)?;
    root::enter()?;
    nix::unistd::sethostname("guest").context("set the hostname")?;
    network::set_up(&job.network)?;
    root::open_rdma_nodes()?;
    ports.report(&Report::Ready)?;

    let (program, arguments) = job.argv.split_first().context("the plan has no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&job.directory);
    command.env_clear().envs(job.environment.iter().cloned());
    match job.terminal {
        Some(size) => command::run_on_terminal(&command, size),
        None => command::run(command, job.interactive, ports),
    }
}
