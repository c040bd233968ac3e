//! Measures, with one line of JSON for each result.

mod callgrind;
mod cold_start;
mod functions;
mod library;
mod peers;
mod process;
mod record;
mod selection;
mod strace;
mod times;

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;

use self::library::Library;
use self::peers::Peers;
use self::selection::Selection;

/// Measures this library and others on devices of this machine; prints a line of JSON for
/// each result
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// A device's name and an address of it; may be repeated
    #[arg(long, required = true, value_name = "NAME=ADDRESS", value_parser = device)]
    device: Vec<Device>,
    /// A release of librdmacm and the C program that was built with it; may be repeated
    #[arg(long, value_name = "NAME=PROGRAM", value_parser = c_program)]
    c: Vec<(String, PathBuf)>,
    /// How often each workload is timed
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Only instructions, calls and allocations of this library, of workloads for which they
    /// are the same in every run
    #[arg(long)]
    counts: bool,
    /// Only these workloads, as `DEVICE/WORKLOAD`, or those whose names contain one of these texts
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// An RDMA device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    name: String,
    address: IpAddr,
}

fn pair(text: &str) -> anyhow::Result<(&str, &str)> {
    text.split_once('=').context("a name, =, and a value")
}

fn device(text: &str) -> anyhow::Result<Device> {
    let (name, address) = pair(text)?;
    let (name, address) = (name.to_owned(), address.parse()?);
    Ok(Device { name, address })
}

fn c_program(text: &str) -> anyhow::Result<(String, PathBuf)> {
    let (name, program) = pair(text)?;
    Ok((name.to_owned(), program.into()))
}

/// Measures. What fails is printed as a result, and does not end the rest.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("find this program")?;
    let selection = Selection::new(&args.device, &args.filters);
    let mut peers = Peers::new(Library::own(&own));
    if args.counts {
        count(&selection.repeatable(), &Library::own(&own), &mut peers);
        return Ok(());
    }
    let mut libraries = vec![Library::bare(&own)];
    let c = args.c.iter();
    libraries.extend(c.map(|(name, program)| Library::c(name, program)));
    libraries.push(Library::tcp(&own));
    libraries.push(Library::own(&own));
    times::run(&selection, &libraries, args.rounds, &mut peers);
    let parts = selection.parts();
    for library in &libraries {
        for part in &parts {
            count(part, library, &mut peers);
        }
        let processes = selection.iter().filter(|selected| selected.measure.process);
        processes.for_each(|selected| cold_start::count(selected, library));
    }
    Ok(())
}

/// Counts what a library needs. One process does all of it.
fn count(selection: &Selection<'_>, library: &Library, peers: &mut Peers) {
    strace::run(selection, library, peers);
    callgrind::run(selection, library, peers);
}
