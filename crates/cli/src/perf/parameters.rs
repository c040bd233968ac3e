//! The parameters of a test, which the client sends as private data, or first on its stream.

use std::fmt;

use clap::ValueEnum;

/// The most bytes of a message.
pub(crate) const MAX_SIZE: u32 = 16 << 20;
/// The most requests in flight.
pub(crate) const MAX_DEPTH: u32 = 1024;
/// The most bytes of all of them.
pub(crate) const MAX_AT_ONCE: u64 = 32 << 20;

/// The first bytes of both sides' private data.
const MAGIC: [u8; 4] = *b"rdmp";
/// The version of the protocol.
const VERSION: u8 = 2;
const POLL: u8 = 1;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Test {
    /// Bandwidth of messages.
    SendBw,
    /// Round trip of two messages.
    SendLat,
    /// Bandwidth of writes into the server's memory.
    WriteBw,
    /// Round trip of two writes.
    WriteLat,
    /// Bandwidth of reads from the server's memory.
    ReadBw,
    /// Time of a read.
    ReadLat,
    /// Bandwidth of a byte stream.
    StreamBw,
    /// Round trip over a byte stream.
    StreamLat,
}

impl Test {
    const ALL: [Self; 8] = [
        Self::SendBw,
        Self::SendLat,
        Self::WriteBw,
        Self::WriteLat,
        Self::ReadBw,
        Self::ReadLat,
        Self::StreamBw,
        Self::StreamLat,
    ];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SendBw => "send-bw",
            Self::SendLat => "send-lat",
            Self::WriteBw => "write-bw",
            Self::WriteLat => "write-lat",
            Self::ReadBw => "read-bw",
            Self::ReadLat => "read-lat",
            Self::StreamBw => "stream-bw",
            Self::StreamLat => "stream-lat",
        }
    }

    pub(crate) fn is_latency(self) -> bool {
        matches!(
            self,
            Self::SendLat | Self::WriteLat | Self::ReadLat | Self::StreamLat
        )
    }

    /// Whether the server has completions during the test. Otherwise the client's device accesses
    /// its memory, and the server waits for the end.
    pub(crate) fn has_replies(self) -> bool {
        !matches!(self, Self::WriteBw | Self::ReadBw | Self::ReadLat)
    }

    pub(crate) fn is_of_stream(self) -> bool {
        matches!(self, Self::StreamBw | Self::StreamLat)
    }
}

/// The parameters that the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) test: Test,
    /// Bytes of a message.
    pub(crate) size: u32,
    /// Requests in flight.
    pub(crate) depth: u32,
    /// Whether both sides poll for completions.
    pub(crate) poll: bool,
}

impl Parameters {
    pub(super) const SIZE: usize = 16;

    /// Magic, version, test, flags, a zero, size, depth; big-endian.
    pub(super) fn to_bytes(self) -> [u8; Self::SIZE] {
        let test = Test::ALL.iter().position(|test| *test == self.test);
        let test = test.and_then(|place| u8::try_from(place).ok());
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = test.unwrap_or_default();
        bytes[6] = if self.poll { POLL } else { 0 };
        bytes[8..12].copy_from_slice(&self.size.to_be_bytes());
        bytes[12..].copy_from_slice(&self.depth.to_be_bytes());
        bytes
    }

    /// Reads the parameters that a client asks for; the reason if they are invalid. On a
    /// transport whose private data have a fixed length, zeros follow.
    pub(super) fn from_private_data(data: &[u8]) -> Result<Self, String> {
        Self::from_bytes(data, |test| !test.is_of_stream())
    }

    /// Reads the parameters of a test of a stream; the reason if they are invalid.
    pub(super) fn from_stream(bytes: &[u8]) -> Result<Self, String> {
        Self::from_bytes(bytes, Test::is_of_stream)
    }

    fn from_bytes(data: &[u8], is_served: fn(Test) -> bool) -> Result<Self, String> {
        check_version(data)?;
        let Some((bytes, _)) = data.split_first_chunk::<{ Self::SIZE }>() else {
            return Err("the parameters are too short".to_owned());
        };
        let [_, _, _, _, _, test, flags, _, size @ .., d0, d1, d2, d3] = *bytes;
        let unknown = || format!("test {test} is not known here");
        let parameters = Self {
            test: *Test::ALL
                .get(usize::from(test))
                .filter(|test| is_served(**test))
                .ok_or_else(unknown)?,
            size: u32::from_be_bytes(size),
            depth: u32::from_be_bytes([d0, d1, d2, d3]),
            poll: flags & POLL != 0,
        };
        parameters.check()?;
        Ok(parameters)
    }

    fn check(self) -> Result<(), String> {
        let Self { size, depth, .. } = self;
        let within = (1..=MAX_SIZE).contains(&size) && (1..=MAX_DEPTH).contains(&depth);
        if within && u64::from(size) * u64::from(depth) <= MAX_AT_ONCE {
            Ok(())
        } else {
            Err(format!(
                "{depth} times {size} bytes are more than is served"
            ))
        }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            test, size, depth, ..
        } = self;
        write!(f, "{}, {size} bytes", test.name())?;
        if test.is_of_stream() {
            return Ok(());
        }
        write!(f, ", {depth} at once")
    }
}

/// The length of the server's answer to parameters that it accepts.
pub(super) const AGREED_SIZE: usize = 5;

/// The server's answer to parameters that it accepts.
pub(super) fn agreed() -> [u8; AGREED_SIZE] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, VERSION]
}

/// Checks that the other side is this command, of this version.
pub(super) fn check_version(data: &[u8]) -> Result<(), String> {
    match data.split_first_chunk() {
        Some((&MAGIC, [VERSION, ..])) => Ok(()),
        Some((&MAGIC, [version, ..])) => Err(format!(
            "one side measures by version {VERSION} and the other by version {version}"
        )),
        _ => Err("the other side is not rdmacm perf".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::builder::PossibleValue;

    use super::*;

    #[test]
    fn terms_arrive_as_they_were_sent() {
        for test in Test::ALL {
            let parameters = Parameters {
                test,
                size: 65536,
                depth: 16,
                poll: test.is_latency(),
            };
            let mut field = parameters.to_bytes().to_vec();
            field.resize(56, 0);
            let (on_stream, in_request) = (
                Parameters::from_stream(&field),
                Parameters::from_private_data(&field),
            );
            let (expected, other) = if test.is_of_stream() {
                (on_stream, in_request)
            } else {
                (in_request, on_stream)
            };
            assert_eq!(expected, Ok(parameters));
            assert!(other.is_err(), "{test:?}");
            let value = test.to_possible_value();
            assert_eq!(
                value.as_ref().map(PossibleValue::get_name),
                Some(test.name())
            );
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let parameters = Parameters {
            test: Test::WriteLat,
            size: 0x0102,
            depth: 1,
            poll: true,
        };
        let bytes = *b"rdmp\x02\x03\x01\0\0\0\x01\x02\0\0\0\x01";
        assert_eq!(parameters.to_bytes(), bytes);
    }

    #[test]
    fn unknown_parameters_and_other_versions_are_refused() {
        let refusal = |data: &[u8]| {
            Parameters::from_private_data(data)
                .err()
                .unwrap_or_default()
        };
        assert!(refusal(b"").contains("not rdmacm perf"));
        assert!(refusal(b"hello, version 1").contains("not rdmacm perf"));
        assert!(refusal(b"rdmp\x01").contains("version 1"));
        assert!(refusal(b"rdmp\x02\0\0\0").contains("too short"));
        assert!(refusal(b"rdmp\x02\x09\0\0\0\0\0\x01\0\0\0\x01").contains("test 9"));
        assert_eq!(check_version(&agreed()), Ok(()));
    }

    #[test]
    fn more_than_is_served_is_refused() {
        let parameters = |size, depth| Parameters {
            test: Test::SendBw,
            size,
            depth,
            poll: false,
        };
        for (size, depth, fits) in [
            (1, 1, true),
            // The limits as they are documented.
            (16 << 20, 2, true),
            (1, 1024, true),
            (32 << 10, 1024, true),
            ((32 << 10) + 1, 1024, false),
            (MAX_SIZE, 2, true),
            (MAX_SIZE, 3, false),
            (MAX_SIZE + 1, 1, false),
            (1, MAX_DEPTH + 1, false),
            (0, 1, false),
            (1, 0, false),
            (u32::MAX, u32::MAX, false),
        ] {
            let data = parameters(size, depth).to_bytes();
            assert_eq!(
                Parameters::from_private_data(&data).is_ok(),
                fits,
                "{size} {depth}"
            );
        }
    }
}
