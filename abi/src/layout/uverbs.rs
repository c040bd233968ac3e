//! The requests and responses of verbs devices.

use crate::uverbs::{
    AllocPd, AllocPdResponse, CreateCq, CreateCqResponse, CreateQp, CreateQpResponse, DeallocPd,
    DestroyCq, DestroyCqResponse, DestroyQp, DestroyQpResponse, GetContext, GetContextResponse,
    Header, ModifyQp, QpDestination, QueryDevice, QueryDeviceResponse, QueryPort,
    QueryPortResponse, QueryQp, QueryQpResponse,
};

pub(super) mod data;
pub(super) mod rxe;
pub(super) mod siw;

// Some C structures are aligned for the driver's words after them, which here
// have structures of their own.
layouts! {
    in kernel "rdma/ib_user_verbs.h";

    Header = "ib_uverbs_cmd_hdr", size 8, align 4 {
        command = "command" @ 0 + 4,
        request_words = "in_words" @ 4 + 2,
        response_words = "out_words" @ 6 + 2,
    }
    GetContext = "ib_uverbs_get_context", size 8, align 8 {
        response = "response" @ 0 + 8,
    }
    GetContextResponse = "ib_uverbs_get_context_resp", size 8, align 4 for 8 {
        async_fd = "async_fd" @ 0 + 4,
        completion_vectors = "num_comp_vectors" @ 4 + 4,
    }
    QueryDevice = "ib_uverbs_query_device", size 8, align 8 {
        response = "response" @ 0 + 8,
    }
    QueryDeviceResponse = "ib_uverbs_query_device_resp", size 176, align 8 {
        firmware_version = "fw_ver" @ 0 + 8,
        node_guid = "node_guid" @ 8 + 8,
        system_image_guid = "sys_image_guid" @ 16 + 8,
        max_mr_size = "max_mr_size" @ 24 + 8,
        page_size_cap = "page_size_cap" @ 32 + 8,
        vendor_id = "vendor_id" @ 40 + 4,
        vendor_part_id = "vendor_part_id" @ 44 + 4,
        hardware_version = "hw_ver" @ 48 + 4,
        max_qp = "max_qp" @ 52 + 4,
        max_qp_wr = "max_qp_wr" @ 56 + 4,
        device_cap_flags = "device_cap_flags" @ 60 + 4,
        max_sge = "max_sge" @ 64 + 4,
        max_sge_rd = "max_sge_rd" @ 68 + 4,
        max_cq = "max_cq" @ 72 + 4,
        max_cqe = "max_cqe" @ 76 + 4,
        max_mr = "max_mr" @ 80 + 4,
        max_pd = "max_pd" @ 84 + 4,
        max_qp_rd_atom = "max_qp_rd_atom" @ 88 + 4,
        max_ee_rd_atom = "max_ee_rd_atom" @ 92 + 4,
        max_res_rd_atom = "max_res_rd_atom" @ 96 + 4,
        max_qp_init_rd_atom = "max_qp_init_rd_atom" @ 100 + 4,
        max_ee_init_rd_atom = "max_ee_init_rd_atom" @ 104 + 4,
        atomic_cap = "atomic_cap" @ 108 + 4,
        max_ee = "max_ee" @ 112 + 4,
        max_rdd = "max_rdd" @ 116 + 4,
        max_mw = "max_mw" @ 120 + 4,
        max_raw_ipv6_qp = "max_raw_ipv6_qp" @ 124 + 4,
        max_raw_ethernet_qp = "max_raw_ethy_qp" @ 128 + 4,
        max_multicast_groups = "max_mcast_grp" @ 132 + 4,
        max_multicast_qp_attach = "max_mcast_qp_attach" @ 136 + 4,
        max_total_multicast_qp_attach = "max_total_mcast_qp_attach" @ 140 + 4,
        max_ah = "max_ah" @ 144 + 4,
        max_fmr = "max_fmr" @ 148 + 4,
        max_map_per_fmr = "max_map_per_fmr" @ 152 + 4,
        max_srq = "max_srq" @ 156 + 4,
        max_srq_wr = "max_srq_wr" @ 160 + 4,
        max_srq_sge = "max_srq_sge" @ 164 + 4,
        max_pkeys = "max_pkeys" @ 168 + 2,
        ack_delay = "local_ca_ack_delay" @ 170 + 1,
        port_count = "phys_port_cnt" @ 171 + 1,
        reserved = "reserved" @ 172 + 4,
    }
    QueryPort = "ib_uverbs_query_port", size 16, align 8 {
        response = "response" @ 0 + 8,
        port_number = "port_num" @ 8 + 1,
        reserved = "reserved" @ 9 + 7,
    }
    QueryPortResponse = "ib_uverbs_query_port_resp", size 40, align 4 {
        port_cap_flags = "port_cap_flags" @ 0 + 4,
        max_message_size = "max_msg_sz" @ 4 + 4,
        bad_pkey_counter = "bad_pkey_cntr" @ 8 + 4,
        qkey_violation_counter = "qkey_viol_cntr" @ 12 + 4,
        gid_table_len = "gid_tbl_len" @ 16 + 4,
        pkey_table_len = "pkey_tbl_len" @ 20 + 2,
        lid = "lid" @ 22 + 2,
        subnet_manager_lid = "sm_lid" @ 24 + 2,
        state = "state" @ 26 + 1,
        max_mtu = "max_mtu" @ 27 + 1,
        active_mtu = "active_mtu" @ 28 + 1,
        lmc = "lmc" @ 29 + 1,
        max_virtual_lanes = "max_vl_num" @ 30 + 1,
        subnet_manager_service_level = "sm_sl" @ 31 + 1,
        subnet_timeout = "subnet_timeout" @ 32 + 1,
        init_type_reply = "init_type_reply" @ 33 + 1,
        active_width = "active_width" @ 34 + 1,
        active_speed = "active_speed" @ 35 + 1,
        physical_state = "phys_state" @ 36 + 1,
        link_layer = "link_layer" @ 37 + 1,
        flags = "flags" @ 38 + 1,
        reserved = "reserved" @ 39 + 1,
    }
    AllocPd = "ib_uverbs_alloc_pd", size 8, align 8 {
        response = "response" @ 0 + 8,
    }
    AllocPdResponse = "ib_uverbs_alloc_pd_resp", size 4, align 4 {
        handle = "pd_handle" @ 0 + 4,
    }
    DeallocPd = "ib_uverbs_dealloc_pd", size 4, align 4 {
        handle = "pd_handle" @ 0 + 4,
    }
    CreateCq = "ib_uverbs_create_cq", size 32, align 8 {
        response = "response" @ 0 + 8,
        user_handle = "user_handle" @ 8 + 8,
        entries = "cqe" @ 16 + 4,
        completion_vector = "comp_vector" @ 20 + 4,
        completion_channel = "comp_channel" @ 24 + 4,
        reserved = "reserved" @ 28 + 4,
    }
    CreateCqResponse = "ib_uverbs_create_cq_resp", size 8, align 4 for 8 {
        handle = "cq_handle" @ 0 + 4,
        entries = "cqe" @ 4 + 4,
    }
    DestroyCq = "ib_uverbs_destroy_cq", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "cq_handle" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    DestroyCqResponse = "ib_uverbs_destroy_cq_resp", size 8, align 4 {
        completion_events_reported = "comp_events_reported" @ 0 + 4,
        async_events_reported = "async_events_reported" @ 4 + 4,
    }
    CreateQp = "ib_uverbs_create_qp", size 56, align 8 {
        response = "response" @ 0 + 8,
        user_handle = "user_handle" @ 8 + 8,
        pd = "pd_handle" @ 16 + 4,
        send_cq = "send_cq_handle" @ 20 + 4,
        recv_cq = "recv_cq_handle" @ 24 + 4,
        srq = "srq_handle" @ 28 + 4,
        max_send_wr = "max_send_wr" @ 32 + 4,
        max_recv_wr = "max_recv_wr" @ 36 + 4,
        max_send_sge = "max_send_sge" @ 40 + 4,
        max_recv_sge = "max_recv_sge" @ 44 + 4,
        max_inline_data = "max_inline_data" @ 48 + 4,
        signal_all = "sq_sig_all" @ 52 + 1,
        qp_type = "qp_type" @ 53 + 1,
        is_srq = "is_srq" @ 54 + 1,
        reserved = "reserved" @ 55 + 1,
    }
    CreateQpResponse = "ib_uverbs_create_qp_resp", size 32, align 4 {
        handle = "qp_handle" @ 0 + 4,
        number = "qpn" @ 4 + 4,
        max_send_wr = "max_send_wr" @ 8 + 4,
        max_recv_wr = "max_recv_wr" @ 12 + 4,
        max_send_sge = "max_send_sge" @ 16 + 4,
        max_recv_sge = "max_recv_sge" @ 20 + 4,
        max_inline_data = "max_inline_data" @ 24 + 4,
        reserved = "reserved" @ 28 + 4,
    }
    QpDestination = "ib_uverbs_qp_dest", size 32, align 4 {
        destination_gid = "dgid" @ 0 + 16,
        flow_label = "flow_label" @ 16 + 4,
        destination_lid = "dlid" @ 20 + 2,
        reserved = "reserved" @ 22 + 2,
        source_gid_index = "sgid_index" @ 24 + 1,
        hop_limit = "hop_limit" @ 25 + 1,
        traffic_class = "traffic_class" @ 26 + 1,
        service_level = "sl" @ 27 + 1,
        source_path_bits = "src_path_bits" @ 28 + 1,
        static_rate = "static_rate" @ 29 + 1,
        is_global = "is_global" @ 30 + 1,
        port_number = "port_num" @ 31 + 1,
    }
    ModifyQp = "ib_uverbs_modify_qp", size 112, align 4 for 8 {
        destination = "dest" @ 0 + 32,
        alternate_destination = "alt_dest" @ 32 + 32,
        handle = "qp_handle" @ 64 + 4,
        mask = "attr_mask" @ 68 + 4,
        qkey = "qkey" @ 72 + 4,
        rq_psn = "rq_psn" @ 76 + 4,
        sq_psn = "sq_psn" @ 80 + 4,
        destination_qp_number = "dest_qp_num" @ 84 + 4,
        access_flags = "qp_access_flags" @ 88 + 4,
        pkey_index = "pkey_index" @ 92 + 2,
        alternate_pkey_index = "alt_pkey_index" @ 94 + 2,
        qp_state = "qp_state" @ 96 + 1,
        current_qp_state = "cur_qp_state" @ 97 + 1,
        path_mtu = "path_mtu" @ 98 + 1,
        path_migration_state = "path_mig_state" @ 99 + 1,
        en_sqd_async_notify = "en_sqd_async_notify" @ 100 + 1,
        max_rd_atomic = "max_rd_atomic" @ 101 + 1,
        max_destination_rd_atomic = "max_dest_rd_atomic" @ 102 + 1,
        min_rnr_timer = "min_rnr_timer" @ 103 + 1,
        port_number = "port_num" @ 104 + 1,
        timeout = "timeout" @ 105 + 1,
        retry_count = "retry_cnt" @ 106 + 1,
        rnr_retry = "rnr_retry" @ 107 + 1,
        alternate_port_number = "alt_port_num" @ 108 + 1,
        alternate_timeout = "alt_timeout" @ 109 + 1,
        reserved = "reserved" @ 110 + 2,
    }
    QueryQp = "ib_uverbs_query_qp", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "qp_handle" @ 8 + 4,
        mask = "attr_mask" @ 12 + 4,
    }
    QueryQpResponse = "ib_uverbs_query_qp_resp", size 128, align 4 for 8 {
        destination = "dest" @ 0 + 32,
        alternate_destination = "alt_dest" @ 32 + 32,
        max_send_wr = "max_send_wr" @ 64 + 4,
        max_recv_wr = "max_recv_wr" @ 68 + 4,
        max_send_sge = "max_send_sge" @ 72 + 4,
        max_recv_sge = "max_recv_sge" @ 76 + 4,
        max_inline_data = "max_inline_data" @ 80 + 4,
        qkey = "qkey" @ 84 + 4,
        rq_psn = "rq_psn" @ 88 + 4,
        sq_psn = "sq_psn" @ 92 + 4,
        destination_qp_number = "dest_qp_num" @ 96 + 4,
        access_flags = "qp_access_flags" @ 100 + 4,
        pkey_index = "pkey_index" @ 104 + 2,
        alternate_pkey_index = "alt_pkey_index" @ 106 + 2,
        qp_state = "qp_state" @ 108 + 1,
        current_qp_state = "cur_qp_state" @ 109 + 1,
        path_mtu = "path_mtu" @ 110 + 1,
        path_migration_state = "path_mig_state" @ 111 + 1,
        sq_draining = "sq_draining" @ 112 + 1,
        max_rd_atomic = "max_rd_atomic" @ 113 + 1,
        max_destination_rd_atomic = "max_dest_rd_atomic" @ 114 + 1,
        min_rnr_timer = "min_rnr_timer" @ 115 + 1,
        port_number = "port_num" @ 116 + 1,
        timeout = "timeout" @ 117 + 1,
        retry_count = "retry_cnt" @ 118 + 1,
        rnr_retry = "rnr_retry" @ 119 + 1,
        alternate_port_number = "alt_port_num" @ 120 + 1,
        alternate_timeout = "alt_timeout" @ 121 + 1,
        signal_all = "sq_sig_all" @ 122 + 1,
        reserved = "reserved" @ 123 + 5,
    }
    DestroyQp = "ib_uverbs_destroy_qp", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "qp_handle" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    DestroyQpResponse = "ib_uverbs_destroy_qp_resp", size 4, align 4 {
        events_reported = "events_reported" @ 0 + 4,
    }
}
