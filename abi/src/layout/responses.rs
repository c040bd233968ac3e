//! The responses of `rdma_user_cm.h`.

use crate::{
    CreateIdResponse, DestroyIdResponse, EventResponse, MigrateIdResponse, QueryAddrResponse,
    QueryIbServiceResponse, QueryPathResponse, QueryRouteResponse,
};

// The head alone, as C sees them: its flexible arrays take no bytes.
type QueryPathHead = QueryPathResponse<0>;
type QueryIbServiceHead = QueryIbServiceResponse<0>;

layouts! {
    in kernel "rdma/rdma_user_cm.h";

    CreateIdResponse = "rdma_ucm_create_id_resp", size 4, align 4 {
        id = "id" @ 0 + 4,
    }
    DestroyIdResponse = "rdma_ucm_destroy_id_resp", size 4, align 4 {
        events_reported = "events_reported" @ 0 + 4,
    }
    QueryRouteResponse = "rdma_ucm_query_route_resp", size 208, align 8 {
        node_guid = "node_guid" @ 0 + 8,
        paths = "ib_route" @ 8 + 128,
        source = "src_addr" @ 136 + 28,
        destination = "dst_addr" @ 164 + 28,
        path_count = "num_paths" @ 192 + 4,
        port_number = "port_num" @ 196 + 1,
        reserved = "reserved" @ 197 + 3,
        device_index = "ibdev_index" @ 200 + 4,
        reserved_end = "reserved1" @ 204 + 4,
    }
    QueryAddrResponse = "rdma_ucm_query_addr_resp", size 280, align 8 {
        node_guid = "node_guid" @ 0 + 8,
        port_number = "port_num" @ 8 + 1,
        reserved = "reserved" @ 9 + 1,
        pkey = "pkey" @ 10 + 2,
        source_size = "src_size" @ 12 + 2,
        destination_size = "dst_size" @ 14 + 2,
        source = "src_addr" @ 16 + 128,
        destination = "dst_addr" @ 144 + 128,
        device_index = "ibdev_index" @ 272 + 4,
        reserved_end = "reserved1" @ 276 + 4,
    }
    QueryPathHead = "rdma_ucm_query_path_resp", size 8, align 1 for 4 {
        path_count = "num_paths" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
        paths = "path_data" @ 8 + 0,
    }
    QueryIbServiceHead = "rdma_ucm_query_ib_service_resp" since (7, 2), size 8, align 1 for 8 {
        record_count = "num_service_recs" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
        records = "recs" @ 8 + 0,
    }
    MigrateIdResponse = "rdma_ucm_migrate_resp", size 4, align 4 {
        events_reported = "events_reported" @ 0 + 4,
    }
    EventResponse = "rdma_ucm_event_resp", size 336, align 8 {
        uid = "uid" @ 0 + 8,
        id = "id" @ 8 + 4,
        event = "event" @ 12 + 4,
        raw_status = "status" @ 16 + 4,
        param = "param" @ 20 + 304,
        reserved = "reserved" @ 324 + 4,
        ece = "ece" @ 328 + 8,
    }
    + views {
        "param.conn" @ 20 + 272,
        "param.ud" @ 20 + 304,
        "param.arg32" since (7, 2) @ 20 + 8,
    }
}
