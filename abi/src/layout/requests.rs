//! The requests of `rdma_user_cm.h`.

use crate::{
    Accept, Bind, BindIp, Connect, CreateId, DestroyId, Disconnect, GetEvent, InitQpAttr,
    JoinIpMulticast, JoinMulticast, LeaveMulticast, Listen, MigrateId, Notify, Query, Reject,
    ResolveAddr, ResolveIbService, ResolveIp, ResolveRoute, SetOption, WriteCmEvent,
};

layouts! {
    in kernel "rdma/rdma_user_cm.h";

    CreateId = "rdma_ucm_create_id", size 24, align 8 {
        uid = "uid" @ 0 + 8,
        response = "response" @ 8 + 8,
        port_space = "ps" @ 16 + 2,
        qp_type = "qp_type" @ 18 + 1,
        reserved = "reserved" @ 19 + 5,
    }
    DestroyId = "rdma_ucm_destroy_id", size 16, align 8 {
        response = "response" @ 0 + 8,
        id = "id" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    BindIp = "rdma_ucm_bind_ip", size 40, align 8 {
        response = "response" @ 0 + 8,
        addr = "addr" @ 8 + 28,
        id = "id" @ 36 + 4,
    }
    ResolveIp = "rdma_ucm_resolve_ip", size 64, align 4 {
        source = "src_addr" @ 0 + 28,
        destination = "dst_addr" @ 28 + 28,
        id = "id" @ 56 + 4,
        timeout_ms = "timeout_ms" @ 60 + 4,
    }
    ResolveRoute = "rdma_ucm_resolve_route", size 8, align 4 {
        id = "id" @ 0 + 4,
        timeout_ms = "timeout_ms" @ 4 + 4,
    }
    Query = "rdma_ucm_query", size 16, align 8 {
        response = "response" @ 0 + 8,
        id = "id" @ 8 + 4,
        option = "option" @ 12 + 4,
    }
    Connect = "rdma_ucm_connect", size 288, align 4 {
        param = "conn_param" @ 0 + 272,
        id = "id" @ 272 + 4,
        reserved = "reserved" @ 276 + 4,
        ece = "ece" @ 280 + 8,
    }
    Listen = "rdma_ucm_listen", size 8, align 4 {
        id = "id" @ 0 + 4,
        backlog = "backlog" @ 4 + 4,
    }
    Accept = "rdma_ucm_accept", size 296, align 8 {
        uid = "uid" @ 0 + 8,
        param = "conn_param" @ 8 + 272,
        id = "id" @ 280 + 4,
        reserved = "reserved" @ 284 + 4,
        ece = "ece" @ 288 + 8,
    }
    Reject = "rdma_ucm_reject", size 264, align 4 {
        id = "id" @ 0 + 4,
        private_data_len = "private_data_len" @ 4 + 1,
        reason = "reason" @ 5 + 1,
        reserved = "reserved" @ 6 + 2,
        private_data = "private_data" @ 8 + 256,
    }
    Disconnect = "rdma_ucm_disconnect", size 4, align 4 {
        id = "id" @ 0 + 4,
    }
    InitQpAttr = "rdma_ucm_init_qp_attr", size 16, align 8 {
        response = "response" @ 0 + 8,
        id = "id" @ 8 + 4,
        qp_state = "qp_state" @ 12 + 4,
    }
    GetEvent = "rdma_ucm_get_event", size 8, align 8 {
        response = "response" @ 0 + 8,
    }
    SetOption = "rdma_ucm_set_option", size 24, align 8 {
        value = "optval" @ 0 + 8,
        id = "id" @ 8 + 4,
        level = "level" @ 12 + 4,
        name = "optname" @ 16 + 4,
        size = "optlen" @ 20 + 4,
    }
    Notify = "rdma_ucm_notify", size 8, align 4 {
        id = "id" @ 0 + 4,
        event = "event" @ 4 + 4,
    }
    JoinIpMulticast = "rdma_ucm_join_ip_mcast", size 48, align 8 {
        response = "response" @ 0 + 8,
        uid = "uid" @ 8 + 8,
        addr = "addr" @ 16 + 28,
        id = "id" @ 44 + 4,
    }
    LeaveMulticast = "rdma_ucm_destroy_id", size 16, align 8 {
        response = "response" @ 0 + 8,
        id = "id" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    MigrateId = "rdma_ucm_migrate_id", size 16, align 8 {
        response = "response" @ 0 + 8,
        id = "id" @ 8 + 4,
        fd = "fd" @ 12 + 4,
    }
    Bind = "rdma_ucm_bind", size 136, align 8 {
        id = "id" @ 0 + 4,
        addr_size = "addr_size" @ 4 + 2,
        reserved = "reserved" @ 6 + 2,
        addr = "addr" @ 8 + 128,
    }
    ResolveAddr = "rdma_ucm_resolve_addr", size 272, align 8 {
        id = "id" @ 0 + 4,
        timeout_ms = "timeout_ms" @ 4 + 4,
        source_size = "src_size" @ 8 + 2,
        destination_size = "dst_size" @ 10 + 2,
        reserved = "reserved" @ 12 + 4,
        source = "src_addr" @ 16 + 128,
        destination = "dst_addr" @ 144 + 128,
    }
    JoinMulticast = "rdma_ucm_join_mcast", size 152, align 8 {
        response = "response" @ 0 + 8,
        uid = "uid" @ 8 + 8,
        id = "id" @ 16 + 4,
        addr_size = "addr_size" @ 20 + 2,
        join_flags = "join_flags" @ 22 + 2,
        addr = "addr" @ 24 + 128,
    }
    ResolveIbService = "rdma_ucm_resolve_ib_service" since (7, 2), size 88, align 8 {
        id = "id" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
        service = "ibs" @ 8 + 80,
    }
    WriteCmEvent = "rdma_ucm_write_cm_event" since (7, 2), size 320, align 8 {
        id = "id" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
        event = "event" @ 8 + 4,
        raw_status = "status" @ 12 + 4,
        param = "param" @ 16 + 304,
    }
    + views {
        "param.conn" since (7, 2) @ 16 + 272,
        "param.ud" since (7, 2) @ 16 + 304,
        "param.arg" since (7, 2) @ 16 + 8,
    }
}
