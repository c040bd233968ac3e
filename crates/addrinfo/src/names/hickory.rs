//! A name resolver in pure Rust.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::name_server::TokioConnectionProvider;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use hickory_resolver::proto::xfer::Protocol;
use hickory_resolver::proto::{ProtoError, ProtoErrorKind};
use hickory_resolver::{ResolveError, TokioResolver, system_conf};
use rdmacm_core::Family;

use super::name_resolver::{Host, HostQuery, NameResolver};
use crate::error::NameError;

/// Host names by [hickory-resolver](https://docs.rs/hickory-resolver), which asks
/// the name servers without the C library: `hosts(5)` and DNS, nothing else of
/// `nsswitch.conf(5)`. Services are still the system's to know.
///
/// IPv6 addresses come first, each family in the server's order. Needs the feature
/// `hickory`.
#[derive(Clone)]
pub struct HickoryResolver {
    config: ResolverConfig,
    options: ResolverOpts,
}

impl HickoryResolver {
    /// One that asks the name servers of `resolv.conf(5)`, read now.
    ///
    /// # Errors
    /// [`NameError::Fail`] where the file cannot be read.
    pub fn system() -> Result<Self, NameError> {
        let (config, options) = system_conf::read_system_conf().map_err(|_| NameError::Fail)?;
        Ok(Self { config, options })
    }

    /// One that asks these name servers.
    #[must_use]
    pub fn with_name_servers(servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut config = ResolverConfig::new();
        for server in servers {
            for protocol in [Protocol::Udp, Protocol::Tcp] {
                config.add_name_server(NameServerConfig::new(server, protocol));
            }
        }
        Self {
            config,
            options: ResolverOpts::default(),
        }
    }

    /// On a runtime of its own.
    fn look_up_here(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| NameError::System(error.raw_os_error().unwrap_or(libc::EMFILE)))?;
        runtime.block_on(by(query, self.look_up(query)))
    }

    async fn look_up(&self, query: &HostQuery<'_>) -> Result<Host, ResolveError> {
        let provider = TokioConnectionProvider::default();
        let mut builder = TokioResolver::builder_with_config(self.config.clone(), provider);
        *builder.options_mut() = self.options.clone();
        builder.options_mut().ip_strategy = match query.family {
            Some(Family::V4) => LookupIpStrategy::Ipv4Only,
            Some(Family::V6) => LookupIpStrategy::Ipv6Only,
            _ => LookupIpStrategy::Ipv4AndIpv6,
        };
        let found = builder.build().lookup_ip(query.name).await?;
        Ok(host(&found))
    }
}

impl NameResolver for HickoryResolver {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return self.look_up_here(query);
        }
        // A thread that runs tasks may not block on another runtime.
        thread::scope(|scope| {
            let look_up = || self.look_up_here(query);
            let looking_up = thread::Builder::new().spawn_scoped(scope, look_up);
            let looking_up = looking_up.map_err(|_| NameError::System(libc::EAGAIN))?;
            looking_up
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

/// Ends at the deadline, after which the answer is not used.
async fn by<T>(
    query: &HostQuery<'_>,
    answer: impl Future<Output = Result<T, ResolveError>>,
) -> Result<T, NameError> {
    // tokio rounds up to whole milliseconds, and a time beyond the clock's range panics.
    let is_in_range = |until: &Instant| until.checked_add(Duration::from_millis(1)).is_some();
    let answer = match query.until.filter(is_in_range) {
        None => answer.await,
        Some(until) => tokio::time::timeout_at(until.into(), answer)
            .await
            .map_err(|_| NameError::Again)?,
    };
    answer.map_err(|error| why(&error))
}

fn host(found: &LookupIp) -> Host {
    let mut addresses: Vec<_> = found.iter().map(|ip| SocketAddr::new(ip, 0)).collect();
    addresses.sort_by_key(SocketAddr::is_ipv4);
    let records = found.as_lookup().record_iter();
    let mut named =
        records.filter(|record| matches!(record.record_type(), RecordType::A | RecordType::AAAA));
    let name = named.next().map(|record| record.name().to_utf8());
    Host {
        addresses,
        canonical_name: name.map(|name| name.trim_end_matches('.').to_owned()),
    }
}

/// As `getaddrinfo(3)` would say it.
fn why(error: &ResolveError) -> NameError {
    match error.proto().map(ProtoError::kind) {
        Some(ProtoErrorKind::NoRecordsFound { response_code, .. }) => match *response_code {
            ResponseCode::NXDomain => NameError::NoName,
            ResponseCode::NoError => NameError::NoData,
            ResponseCode::ServFail => NameError::Again,
            _ => NameError::Fail,
        },
        Some(ProtoErrorKind::Timeout | ProtoErrorKind::NoConnections | ProtoErrorKind::Io(_)) => {
            NameError::Again
        }
        _ => NameError::Fail,
    }
}

impl fmt::Debug for HickoryResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HickoryResolver")
            .field("servers", &self.config.name_servers())
            .finish_non_exhaustive()
    }
}
