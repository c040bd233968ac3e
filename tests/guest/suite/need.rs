//! Requirements of tests to the kernel, the device and the guest.

use std::path::Path;
use std::sync::LazyLock;

use rdmacm_tests::{Site, Soft};

use crate::c_tools::{self, cmtime, one_message};
use crate::rdma_core::RdmaCore;
use crate::streams::{preload, rsocket_calls};
use crate::{command, getaddrinfo};

/// Something that not every kernel, device or guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Unreliable datagrams, multicast groups and atomics: RoCE.
    Datagrams,
    /// Device events about a neighbour whose address changes: RoCE.
    NeighbourUpdates,
    /// A connecting side that answers the response: RoCE.
    CmResponse,
    /// Requests that complete when the peer's device has acknowledged them: RoCE.
    AcknowledgedSends,
    /// Queue pairs that the caller moves from state to state: RoCE.
    ModifyQp,
    /// A TCP handshake below the connection: iWARP.
    TcpHandshake,
    /// Queue pairs that the driver moves from state to state: iWARP.
    QpsModifiedByDriver,
    /// `WRITE_CM_EVENT`, since Linux 6.18.
    WriteCmEvent,
    /// `tests/c/peer.c`.
    CPeer,
    /// `rping`, `ucmatose`, `udaddy` and `mckey`.
    Tools,
    /// `rdma_client`, `rdma_server`, `rdma_xclient` and `rdma_xserver`.
    OneMessageTools,
    /// A `cmtime` before rdma-core 52.
    Cmtime,
    /// The newest rdma-core's `cmtime`.
    NewestCmtime,
    /// Programs that speak TCP, and librdmacm's library for preloading.
    Preloaded,
    /// Such a library that knows the calls of newer programs.
    NewestPreloaded,
    /// Such a library whose streams need no inline data on the device.
    StreamsWithoutInline,
    /// `strace`.
    Strace,
    /// `tests/c/getaddrinfo.c` with the system's librdmacm, and `dnsmasq`.
    CLibrary,
    /// As `CLibrary`, with the newest librdmacm.
    NewestCLibrary,
}

static TOOLS: LazyLock<bool> = LazyLock::new(|| {
    let tools = ["rping", "ucmatose", "udaddy", "mckey"];
    tools.into_iter().all(c_tools::installed)
});
static ONE_MESSAGE_TOOLS: LazyLock<bool> =
    LazyLock::new(|| one_message::TOOLS.into_iter().all(c_tools::installed));
static CMTIME: LazyLock<bool> = LazyLock::new(cmtime::is_alone);
static NEWEST_CMTIME: LazyLock<bool> = LazyLock::new(cmtime::mesh::is_there);
static PRELOADED: LazyLock<bool> = LazyLock::new(preload::is_there);
static NEWEST_PRELOADED: LazyLock<bool> = LazyLock::new(preload::has_newest);

const WITHOUT_TOOLS: &str = "rdma-core's tools are not installed: rdmacm-utils";

impl Need {
    /// The reason to skip a test that needs it, if it is missing.
    pub(crate) fn missing(self, kernel: &str, site: &Site) -> Option<&'static str> {
        let (rxe, siw) = (site.soft == Soft::Rxe, site.soft == Soft::Siw);
        let (is_met, reason) = match self {
            Self::Datagrams => (rxe, "siw has reliable connections alone"),
            Self::NeighbourUpdates => (rxe, "iWARP leaves its neighbours to TCP"),
            Self::CmResponse => (
                rxe,
                "iWARP's peers connect without a response of the connecting side",
            ),
            Self::AcknowledgedSends => (rxe, "siw completes requests that have not arrived yet"),
            Self::ModifyQp => (rxe, "siw moves queue pairs itself, when it connects them"),
            Self::TcpHandshake => (siw, "RoCE has no TCP connection to begin with"),
            Self::QpsModifiedByDriver => (siw, "on rxe the caller moves queue pairs"),
            Self::WriteCmEvent => (
                kernel != "stock",
                "this kernel takes no events of one's own",
            ),
            Self::CPeer => (
                command::built("rdmacm-c-peer").exists(),
                "tests/c/peer.c was not built: it takes gcc and librdmacm's headers",
            ),
            Self::Tools => (*TOOLS, WITHOUT_TOOLS),
            Self::OneMessageTools => (*ONE_MESSAGE_TOOLS, WITHOUT_TOOLS),
            Self::Cmtime => (
                *CMTIME,
                "there is no cmtime that needs nothing but connections: rdmacm-utils before 52",
            ),
            Self::NewestCmtime => (*NEWEST_CMTIME, cmtime::mesh::WITHOUT),
            Self::Preloaded => (*PRELOADED, preload::WITHOUT),
            Self::NewestPreloaded => (*NEWEST_PRELOADED, preload::WITHOUT_NEWEST),
            Self::StreamsWithoutInline => (
                rsocket_calls::work_without_inline(site),
                rsocket_calls::NEED_INLINE,
            ),
            Self::Strace => (
                Path::new("/usr/bin/strace").exists(),
                "strace is not installed",
            ),
            Self::CLibrary => (
                getaddrinfo::can_ask(RdmaCore::System),
                getaddrinfo::CANNOT_ASK,
            ),
            Self::NewestCLibrary => (
                getaddrinfo::can_ask(RdmaCore::Newest),
                getaddrinfo::CANNOT_ASK,
            ),
        };
        (!is_met).then_some(reason)
    }
}
