//! Events of a channel.

use std::time::Duration;

use rdmacm_core::{AhAttr, Error, Event, EventKind, QpType};
use zerocopy::FromZeros as _;

use super::Objects;
use super::answer::Answer;
use super::words::Words;

/// Longer than an event takes.
const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

impl Objects {
    pub(super) fn next_event(&mut self, words: &Words<'_>) -> Answer {
        match self.channel(words.at(1)).next_event(EVENT_TIMEOUT) {
            Err(Error::DeadlinePassed) => Answer::line("none"),
            Err(error) => Answer::failed(&error),
            Ok(event) => self.describe(event, words.value("child")),
        }
    }

    /// Keeps the child of a request if it has a name.
    fn describe(&mut self, event: Event, child: Option<&str>) -> Answer {
        let mut answer = Answer::ok()
            .with("event", event.kind())
            .with("status", event.status());
        let name = self.name_of(event.id());
        answer = match event.kind() {
            EventKind::ConnectRequest => answer
                .with("id", child.unwrap_or("dropped"))
                .with("listener", name),
            _ => answer.with("id", name),
        };
        let kind = event.kind();
        if matches!(kind, EventKind::MulticastJoin | EventKind::MulticastError) {
            answer = answer.with("group", self.name_of_group(&event));
        }
        answer = if event.id().qp_type() == QpType::UD {
            with_ud(answer, &event)
        } else {
            with_conn(answer, &event)
        };
        answer = answer
            .with("data_len", event.private_data().len())
            .with_bytes("data", event.private_data());
        if matches!(kind, EventKind::ConnectRequest | EventKind::ConnectResponse) {
            let ece = event.ece();
            answer = answer.with(
                "ece",
                format_args!("{}:{}", hex(ece.vendor_id), hex(ece.options)),
            );
        }
        if let (Some(name), Some(child)) = (child, event.into_child()) {
            self.ids.insert(name.to_owned(), child);
        }
        answer
    }

    fn name_of_group(&self, event: &Event) -> &str {
        let found = self.groups.iter().find(|(_, group)| {
            let membership = group.membership.as_ref();
            membership.is_some_and(|membership| membership.concerns(event))
        });
        found.map(|(name, _)| name.as_str()).unwrap()
    }

    pub(super) fn no_event(&self, words: &Words<'_>) -> Answer {
        self.poll(words, Duration::ZERO)
    }

    pub(super) fn wait_for_event(&self, words: &Words<'_>) -> Answer {
        self.poll(words, EVENT_TIMEOUT)
    }

    /// Whether an event is pending in time. It is not read.
    fn poll(&self, words: &Words<'_>, timeout: Duration) -> Answer {
        match self.channel(words.at(1)).wait(timeout) {
            Ok(()) => Answer::line("some"),
            Err(Error::DeadlinePassed) => Answer::line("none"),
            Err(error) => Answer::failed(&error),
        }
    }
}

fn with_conn(answer: Answer, event: &Event) -> Answer {
    let conn = event.conn();
    let byte = |value: Option<u8>| value.unwrap_or_default();
    answer
        .with("qp_num", conn.map_or(0, |conn| conn.qp_number))
        .with(
            "responder_resources",
            byte(conn.map(|conn| conn.responder_resources)),
        )
        .with(
            "initiator_depth",
            byte(conn.map(|conn| conn.initiator_depth)),
        )
        .with(
            "flow_control",
            byte(conn.map(|conn| conn.flow_control.into())),
        )
        .with("retry_count", byte(conn.map(|conn| conn.retry_count)))
        .with(
            "rnr_retry_count",
            byte(conn.map(|conn| conn.rnr_retry_count)),
        )
        .with("srq", byte(conn.map(|conn| conn.srq.into())))
}

fn with_ud(answer: Answer, event: &Event) -> Answer {
    let ud = event.ud();
    let no_address = AhAttr::new_zeroed();
    answer
        .with("qp_num", ud.map_or(0, |ud| ud.qp_number))
        .with_hex("qkey", ud.map_or(0, |ud| ud.qkey))
        .with_ah("", &ud.map_or(no_address, |ud| ud.ah_attr))
}

/// As C's `%#x`.
fn hex(value: u32) -> String {
    match value {
        0 => "0".to_owned(),
        value => format!("{value:#x}"),
    }
}
