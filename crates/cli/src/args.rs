//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use rdmacm::addrinfo::{DEFAULT_DEADLINE, Hints, allowed_qp_types, parse_numeric};
use rdmacm::core::{Family, IbAddr, PortSpace, QpType};

mod cat;
mod peer;
mod perf;
mod ping;
mod server;

pub(crate) use cat::CatArgs;
pub(crate) use peer::Role;
pub(crate) use perf::{Goal, PerfArgs};
pub(crate) use ping::PingArgs;
pub(crate) use server::ServerArgs;

/// Resolves names for RDMA, lists RDMA devices, tries and measures connections, and copies
/// data through them.
#[derive(Debug, Parser)]
#[command(name = "rdmacm", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Resolves a name to RDMA addresses: source, device, GIDs and path.
    ///
    /// Exits with 0 if RDMA reaches at least one address, with 1 and the
    /// reasons if it reaches none, with 2 for bad usage.
    Resolve(ResolveArgs),
    /// Lists the RDMA devices, their ports, links and addresses.
    ///
    /// Exits with 0, also where there is no device, with 1 and the reason if there is no
    /// list, with 2 for bad usage.
    Devices(DevicesArgs),
    /// Sends data to a server and back, as rping does, and prints how long that took.
    ///
    /// The server reads what is to be sent from the client's memory and writes it
    /// back to another place there. Either side may be rping.
    ///
    /// Needs a device of the driver rxe or siw, permission on its /dev/infiniband/uverbsN, and
    /// locked memory.
    ///
    /// Exits with 0 if every ping came back, with 1 and the reason otherwise, with 2
    /// for bad usage. A server exits with 1 if a client that it accepted has failed.
    Ping(PingArgs),
    /// Measures bandwidth or latency to a server of the same command.
    ///
    /// Needs a device of the driver rxe or siw, permission on its /dev/infiniband/uverbsN, and
    /// locked memory.
    ///
    /// Exits with 0 if all was measured, with 1 and the reason otherwise, with 2 for
    /// bad usage. A server exits with 1 if a client that it accepted has failed.
    Perf(PerfArgs),
    /// Copies standard input to a peer, and what the peer sends to standard output, by a
    /// stream.
    ///
    /// The peer may be any program that uses rsockets or `RdmaStream`. The end of the input
    /// ends the direction to the peer; the command ends when both directions have. If the
    /// input is a terminal, it ends when the peer has ended its direction.
    ///
    /// Needs a device of the driver rxe or siw, permission on its /dev/infiniband/uverbsN, and
    /// locked memory.
    ///
    /// Exits with 0 if all was sent and received, with 1 and the reason otherwise, with 2
    /// for bad usage.
    Cat(CatArgs),
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ResolveArgs {
    /// A host's name or IP address; a link-local address is followed by a percent sign and
    /// its scope. With --passive also an interface or an RDMA device of this
    /// machine; with --family ib a GID.
    #[arg(required_unless_present_any = ["sa", "local"])]
    #[arg(conflicts_with_all = ["sa", "local"])]
    pub(crate) node: Option<String>,
    /// A port or a service's name.
    #[arg(conflicts_with_all = ["sa", "local"])]
    pub(crate) service: Option<String>,
    /// Instead of a node, the InfiniBand service of this name or number (decimal, hexadecimal
    /// with 0x, or octal with a leading 0), which the subnet administrator knows. Needs Linux
    /// 6.18 and an active InfiniBand port.
    #[arg(long, value_name = "SERVICE")]
    #[arg(conflicts_with_all = ["local", "passive", "source", "acm", "ps", "numeric"])]
    pub(crate) sa: Option<String>,
    /// Instead of a node, every IP address of this machine that RDMA serves.
    #[arg(long, conflicts_with_all = ["source", "by_event"])]
    pub(crate) local: bool,
    /// Ask the ibacm whose socket or port file is in DIR for paths, and report if it
    /// knows none. Without this option the one in /run is asked, if there is one.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "/run")]
    #[arg(require_equals = true, conflicts_with_all = ["local", "passive"])]
    pub(crate) acm: Option<PathBuf>,
    /// Resolve asynchronously, and wait for the event that reports the result.
    #[arg(long = "async")]
    pub(crate) by_event: bool,
    /// Print a line for each path after the table.
    #[arg(long, conflicts_with = "json")]
    pub(crate) routes: bool,
    /// Resolve for listening: a source and no destination.
    #[arg(long)]
    passive: bool,
    /// NODE is a numeric address; query no name server.
    #[arg(long)]
    numeric: bool,
    /// Do not resolve routes.
    #[arg(long)]
    no_route: bool,
    /// Only addresses of this family.
    #[arg(long, value_enum)]
    family: Option<FamilyArg>,
    /// The type of queue pair.
    #[arg(long, value_enum)]
    qp: Option<QpArg>,
    /// The port space.
    #[arg(long, value_enum)]
    ps: Option<PortSpaceArg>,
    /// The address to start from; with `--family ib` a GID.
    #[arg(long, value_name = "ADDR", value_parser = source, conflicts_with = "passive")]
    source: Option<SocketAddr>,
    /// The deadline for everything together, the name server included.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value_t = Milliseconds(DEFAULT_DEADLINE))]
    timeout: Milliseconds,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DevicesArgs {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    #[value(name = "4")]
    V4,
    #[value(name = "6")]
    V6,
    /// Native InfiniBand addresses; NODE is a GID.
    Ib,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum QpArg {
    Rc,
    Uc,
    Ud,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PortSpaceArg {
    Tcp,
    Udp,
    Ipoib,
    Ib,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Milliseconds(pub(crate) Duration);

impl std::fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_millis().fmt(f)
    }
}

fn milliseconds(text: &str) -> Result<Milliseconds, String> {
    match any_milliseconds(text) {
        Ok(Milliseconds(Duration::ZERO)) => Err("0 ms is no time to wait".to_owned()),
        any => any,
    }
}

fn any_milliseconds(text: &str) -> Result<Milliseconds, String> {
    let milliseconds = text.parse().map(Duration::from_millis).map(Milliseconds);
    milliseconds.map_err(|error: std::num::ParseIntError| error.to_string())
}

fn source(text: &str) -> Result<SocketAddr, String> {
    parse_numeric(text).ok_or_else(|| "not an IP address of a known scope".to_owned())
}

impl ResolveArgs {
    /// How long everything together may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.0
    }

    /// The hints that these arguments describe.
    pub(crate) fn hints(&self) -> Hints {
        let mut hints = Hints::new().canonical_name().deadline(self.timeout());
        for (asked, with) in [
            (self.passive, Hints::passive as fn(Hints) -> Hints),
            (self.numeric, Hints::numeric_host),
            (self.no_route, Hints::no_route),
        ] {
            if asked {
                hints = with(hints);
            }
        }
        if let Some(family) = self.family.map(Family::from) {
            hints = hints.family(family);
            // GIDs have no names.
            if family == Family::Ib {
                hints = hints.numeric_host();
            }
        }
        if self.sa.is_some() {
            hints = hints.subnet_administrator();
        }
        if let Some(qp_type) = self.qp {
            hints = hints.qp_type(qp_type.into());
        }
        if let Some(port_space) = self.ps {
            hints = hints.port_space(port_space.into());
        }
        match self.source {
            Some(SocketAddr::V6(gid)) if self.family.map(Family::from) == Some(Family::Ib) => {
                let port_space = match (self.ps, self.qp.map(QpType::from)) {
                    (Some(port_space), _) => port_space.into(),
                    (None, None | Some(QpType::RC)) => PortSpace::TCP,
                    (None, Some(QpType::UD)) => PortSpace::UDP,
                    (None, Some(_)) => PortSpace::IB,
                };
                hints.source(IbAddr::from_v6(gid, port_space))
            }
            Some(source) => hints.source(source),
            None => hints,
        }
    }

    /// Why the arguments contradict each other; a usage error.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let (qp_type, port_space) = (QpType::from(self.qp?), PortSpace::from(self.ps?));
        let allowed = allowed_qp_types(port_space);
        (!allowed.contains(&qp_type))
            .then(|| format!("--ps {port_space:?} allows --qp {allowed:?}, not {qp_type:?}"))
    }
}

/// Prints a usage error as clap does, and exits with 2.
pub(crate) fn usage_error(contradiction: &str) -> ! {
    let mut command = Args::command();
    command
        .error(ErrorKind::ArgumentConflict, contradiction)
        .exit()
}

impl From<FamilyArg> for Family {
    fn from(family: FamilyArg) -> Self {
        match family {
            FamilyArg::V4 => Self::V4,
            FamilyArg::V6 => Self::V6,
            FamilyArg::Ib => Self::Ib,
        }
    }
}

impl From<QpArg> for QpType {
    fn from(qp_type: QpArg) -> Self {
        match qp_type {
            QpArg::Rc => Self::RC,
            QpArg::Uc => Self::UC,
            QpArg::Ud => Self::UD,
        }
    }
}

impl From<PortSpaceArg> for PortSpace {
    fn from(port_space: PortSpaceArg) -> Self {
        match port_space {
            PortSpaceArg::Tcp => Self::TCP,
            PortSpaceArg::Udp => Self::UDP,
            PortSpaceArg::Ipoib => Self::IPOIB,
            PortSpaceArg::Ib => Self::IB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }
}
