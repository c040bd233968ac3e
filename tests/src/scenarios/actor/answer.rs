//! The format of an answer.

use std::fmt::{self, Write as _};

use rdmacm_core::{AhAttr, CmAddr, Error, Result};

/// The lines of an answer.
pub(super) struct Answer(String);

impl Answer {
    pub(super) fn ok() -> Self {
        Self::line("ok")
    }

    pub(super) fn line(line: &str) -> Self {
        Self(format!("{line}\n"))
    }

    /// The result of a call.
    pub(super) fn from_result<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::ok(),
            Err(error) => Self::failed(error),
        }
    }

    pub(super) fn failed(error: &Error) -> Self {
        Self::refusal(error.raw_os_error())
    }

    /// The kernel's refusal has an error number; this library's has none.
    pub(super) fn refusal(errno: Option<i32>) -> Self {
        match errno {
            Some(errno) => Self::line(&format!("errno={errno}")),
            None => Self::line("refused"),
        }
    }

    pub(super) fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        writeln!(self.0, "{key}={value}").unwrap();
        self
    }

    /// As C's `%#x`.
    pub(super) fn with_hex(self, key: &str, value: impl Into<u64>) -> Self {
        match value.into() {
            0 => self.with(key, 0),
            value => self.with(key, format_args!("{value:#x}")),
        }
    }

    pub(super) fn with_bytes(self, key: &str, bytes: &[u8]) -> Self {
        let mut digits = String::new();
        for byte in bytes {
            write!(digits, "{byte:02x}").unwrap();
        }
        self.with(key, digits)
    }

    pub(super) fn with_address(self, key: &str, address: Option<CmAddr>) -> Self {
        match address.and_then(|address| address.socket_addr()) {
            Some(address) => self
                .with(key, address.ip())
                .with(&format!("{key}_port"), address.port()),
            None => self.with(key, "none"),
        }
    }

    pub(super) fn with_ah(self, prefix: &str, ah: &AhAttr) -> Self {
        let key = |name: &str| format!("{prefix}{name}");
        self.with(&key("dlid"), ah.destination_lid)
            .with(&key("sl"), ah.service_level)
            .with(&key("src_path_bits"), ah.source_path_bits)
            .with(&key("static_rate"), ah.static_rate)
            .with(&key("is_global"), ah.is_global)
            .with(&key("ah_port_num"), ah.port_number)
            .with_bytes(&key("dgid"), &ah.grh.destination_gid)
            .with(&key("flow_label"), ah.grh.flow_label)
            .with(&key("sgid_index"), ah.grh.source_gid_index)
            .with(&key("hop_limit"), ah.grh.hop_limit)
            .with(&key("traffic_class"), ah.grh.traffic_class)
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.0.lines().map(str::to_owned).collect()
    }
}
