//! A port of a device.

use rdmacm_abi::uverbs::QueryPortResponse;
use rdmacm_core::{PathMtu, PhysicalState, PortState};

/// The attributes of a port. Source: `ibv_query_port(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_port_attr")]
#[non_exhaustive]
pub struct PortAttr {
    /// The state of the logical link.
    pub state: PortState,
    /// The state of the physical link.
    #[doc(alias = "phys_state")]
    pub physical_state: PhysicalState,
    /// The largest MTU.
    pub max_mtu: PathMtu,
    /// The MTU in use.
    pub active_mtu: PathMtu,
    /// The length of the longest message in bytes.
    #[doc(alias = "max_msg_sz")]
    pub max_message_size: u32,
    /// The length of the GID table.
    #[doc(alias = "gid_tbl_len")]
    pub gid_table_len: u32,
    /// The length of the partition key table.
    #[doc(alias = "pkey_tbl_len")]
    pub pkey_table_len: u16,
}

impl From<QueryPortResponse> for PortAttr {
    fn from(answer: QueryPortResponse) -> Self {
        Self {
            state: PortState(answer.state),
            physical_state: PhysicalState(answer.physical_state),
            max_mtu: PathMtu::new(answer.max_mtu.into()),
            active_mtu: PathMtu::new(answer.active_mtu.into()),
            max_message_size: answer.max_message_size,
            gid_table_len: answer.gid_table_len,
            pkey_table_len: answer.pkey_table_len,
        }
    }
}
