//! InfiniBand services, by query of the subnet administrator.

use std::thread;
use std::time::Instant;

use rdmacm_core::{
    CmAddr, CmId, Deadline, Error as CoreError, Event, EventChannel, EventKind, IbAddr, IbService,
    InfinibandPort, PortSpace, ServiceRecord,
};

use crate::channel_source::ResolutionChannel;
use crate::error::{Error, Result, Unanswered};
use crate::lookup_limit::LookupLimits;
use crate::probe_target::ProbeTarget;
use crate::unreachable::{Reason, Step, Unreachable};

/// Reads the service to look up. A service has no node.
pub(crate) fn wanted(node: Option<&str>, service: Option<&str>) -> Result<IbService> {
    if node.is_some() {
        return Err(Error::SaWithNode);
    }
    read(service.ok_or(Error::SaWithoutService)?)
}

/// Reads a service: by its id if the whole text is a number in C's notation, otherwise
/// by its name. (librdmacm uses `strtoull`, which also skips leading spaces and accepts
/// a sign.)
fn read(text: &str) -> Result<IbService> {
    if text.contains('\0') {
        return Err(Error::NulInText);
    }
    if let Some(number) = number(text) {
        return Ok(IbService::with_id(number));
    }
    let name = Some(text.as_bytes()).filter(|name| !name.is_empty());
    name.and_then(IbService::with_name)
        .ok_or(Error::ServiceName(text.len()))
}

fn number(text: &str) -> Option<u64> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // `from_str_radix` accepts a sign.
    let all_digits = digits.chars().all(|digit| digit.is_digit(radix));
    all_digits
        .then(|| u64::from_str_radix(digits, radix).ok())
        .flatten()
}

/// Queries the subnet administrators of all active ports at once. Returns the records of
/// the first that answers.
pub(crate) fn find(
    channel: &ResolutionChannel,
    service: IbService,
    until: Option<Instant>,
    limits: &LookupLimits,
) -> Result<Vec<ProbeTarget>> {
    let ports = channel.infiniband_ports()?;
    if ports.is_empty() {
        return Err(Error::NoInfinibandPort);
    }
    let all = Vec::with_capacity(ports.len());
    let mut queries = Queries { all, limits };
    for port in ports {
        let query = ServiceQuery::start(channel, port, service)?;
        queries.all.push(query);
    }
    let deadline = until.map_or(Deadline::Never, Deadline::At);
    while queries.all.iter().any(ServiceQuery::is_active) {
        match channel.next(deadline) {
            Ok(event) => {
                let mut all = queries.all.iter_mut();
                if let Some(candidates) = all.find_map(|query| query.handle_event(&event)) {
                    return Ok(candidates);
                }
            }
            Err(CoreError::DeadlinePassed) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::NoService(
        queries.all.iter().map(ServiceQuery::unanswered).collect(),
    ))
}

/// The queries through all ports.
struct Queries<'a> {
    all: Vec<ServiceQuery>,
    limits: &'a LookupLimits,
}

impl Drop for Queries<'_> {
    /// Destroys the ids of queries that are not answered on a thread: the kernel does not cancel
    /// their query (`cma_cancel_operation`), and waits for its end, up to two seconds. Without a
    /// thread, or if there are many, they are destroyed here.
    fn drop(&mut self) {
        self.all.retain(ServiceQuery::is_active);
        if self.all.is_empty() {
            return;
        }
        let Some(permit) = self.limits.try_destruction() else {
            return;
        };
        let all = std::mem::take(&mut self.all);
        let destroying = thread::Builder::new().name("rdmacm".to_owned());
        let _ = destroying.spawn(move || drop((all, permit)));
    }
}

/// The query through one port.
struct ServiceQuery {
    port: InfinibandPort,
    state: QueryState,
}

enum QueryState {
    /// The id waits for the answer.
    Active(CmId),
    Answered,
    Failed(Reason),
}

impl ServiceQuery {
    fn start(channel: &EventChannel, port: InfinibandPort, service: IbService) -> Result<Self> {
        let id = channel.create_id(PortSpace::IB)?;
        let started = id
            .bind(IbAddr::new(port.gid))
            .and_then(|()| id.resolve_ib_service(service));
        match started {
            Ok(_) => Ok(Self {
                port,
                state: QueryState::Active(id),
            }),
            // The kernel supports it on no port.
            Err(error @ CoreError::Unsupported { .. }) => Err(error.into()),
            Err(error) => Ok(Self {
                port,
                state: QueryState::Failed(Reason::Refused(error)),
            }),
        }
    }

    fn is_active(&self) -> bool {
        matches!(self.state, QueryState::Active(_))
    }

    /// The addresses of the service, if the event completes this query.
    fn handle_event(&mut self, event: &Event) -> Option<Vec<ProbeTarget>> {
        let QueryState::Active(id) = &self.state else {
            return None;
        };
        if *event.id() != **id {
            return None;
        }
        let records = match (event.failure(), event.kind()) {
            (Some(failure), _) => Err(Reason::Failed(failure)),
            (None, EventKind::AddrInfoResolved) => id.ib_service_records().map_err(Reason::Refused),
            (None, _) => return None,
        };
        match records {
            Ok(records) => {
                self.state = QueryState::Answered;
                let candidates = records.iter().map(|record| self.candidate(record));
                Some(candidates.collect())
            }
            Err(reason) => {
                self.state = QueryState::Failed(reason);
                None
            }
        }
    }

    /// From this port, in the record's partition, to the record's service.
    fn candidate(&self, record: &ServiceRecord) -> ProbeTarget {
        let source = IbAddr::new(self.port.gid)
            .with_pkey(record.pkey)
            .with_ip_service(PortSpace::IB, 0);
        ProbeTarget {
            source: Some(source.into()),
            ..CmAddr::from(destination(record)).into()
        }
    }

    fn unanswered(&self) -> Unanswered {
        let reason = match &self.state {
            QueryState::Failed(reason) => reason.clone(),
            QueryState::Active(_) | QueryState::Answered => Reason::Deadline,
        };
        Unanswered {
            port: self.port.clone(),
            why: Unreachable {
                step: Step::Service,
                reason,
            },
        }
    }
}

/// Where a record's service is.
pub(crate) fn destination(record: &ServiceRecord) -> IbAddr {
    IbAddr::new(record.gid)
        .with_pkey(record.pkey)
        .with_service_id(record.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_as_c_writes_them() {
        for (text, number) in [
            ("7", 7),
            ("0", 0),
            ("0x10", 16),
            ("0XfF", 255),
            ("017", 15),
            ("18446744073709551615", u64::MAX),
            ("0xffffffffffffffff", u64::MAX),
        ] {
            assert_eq!(read(text), Ok(IbService::with_id(number)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_a_name() {
        let longest = "x".repeat(63);
        for text in [
            "storage",
            "0x",
            "0xg",
            "08",
            "7a",
            "-1",
            "+7",
            " 7",
            "7 ",
            "18446744073709551616",
            &longest,
        ] {
            let expected = IbService::with_name(text.as_bytes()).unwrap();
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert_eq!(read(""), Err(Error::ServiceName(0)));
        assert_eq!(read(&"x".repeat(64)), Err(Error::ServiceName(64)));
        assert_eq!(read("a\0b"), Err(Error::NulInText));
        assert_eq!(read("7\0"), Err(Error::NulInText));
    }

    proptest! {
        #[test]
        fn every_number_is_read_back(id: u64) {
            let expected = Ok(IbService::with_id(id));
            prop_assert_eq!(read(&id.to_string()), expected.clone());
            prop_assert_eq!(read(&format!("{id:#x}")), expected.clone());
            prop_assert_eq!(read(&format!("0{id:o}")), expected);
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = read(&text);
        }
    }
}
