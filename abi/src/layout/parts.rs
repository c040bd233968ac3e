//! What requests and responses are made of.

use crate::{ConnParam, Ece, Header, IbService, UdParam};

layouts! {
    in kernel "rdma/rdma_user_cm.h";

    Header = "rdma_ucm_cmd_hdr", size 8, align 4 {
        cmd = "cmd" @ 0 + 4,
        request_size = "in" @ 4 + 2,
        response_size = "out" @ 6 + 2,
    }
    ConnParam = "rdma_ucm_conn_param", size 272, align 4 {
        qp_number = "qp_num" @ 0 + 4,
        qkey = "qkey" @ 4 + 4,
        private_data = "private_data" @ 8 + 256,
        private_data_len = "private_data_len" @ 264 + 1,
        srq = "srq" @ 265 + 1,
        responder_resources = "responder_resources" @ 266 + 1,
        initiator_depth = "initiator_depth" @ 267 + 1,
        flow_control = "flow_control" @ 268 + 1,
        retry_count = "retry_count" @ 269 + 1,
        rnr_retry_count = "rnr_retry_count" @ 270 + 1,
        valid = "valid" @ 271 + 1,
    }
    UdParam = "rdma_ucm_ud_param", size 304, align 4 {
        qp_number = "qp_num" @ 0 + 4,
        qkey = "qkey" @ 4 + 4,
        ah_attr = "ah_attr" @ 8 + 32,
        private_data = "private_data" @ 40 + 256,
        private_data_len = "private_data_len" @ 296 + 1,
        reserved = "reserved" @ 297 + 7,
    }
    Ece = "rdma_ucm_ece", size 8, align 4 {
        vendor_id = "vendor_id" @ 0 + 4,
        options = "attr_mod" @ 4 + 4,
    }
    IbService = "rdma_ucm_ib_service" since (7, 2), size 80, align 8 {
        service_id = "service_id" @ 0 + 8,
        service_name = "service_name" @ 8 + 64,
        flags = "flags" @ 72 + 4,
        reserved = "reserved" @ 76 + 4,
    }
}

pub(super) mod records {
    //! Path and service records.

    use crate::{PathRecordData, ServiceRecord, UserPathRecord};

    layouts! {
        in kernel "rdma/ib_user_sa.h";

        PathRecordData = "ib_path_rec_data", size 72, align 1 for 4 {
            flags = "flags" @ 0 + 4,
            reserved = "reserved" @ 4 + 4,
            record = "path_rec" @ 8 + 64,
        }
        UserPathRecord = "ib_user_path_rec", size 64, align 4 {
            destination_gid = "dgid" @ 0 + 16,
            source_gid = "sgid" @ 16 + 16,
            destination_lid = "dlid" @ 32 + 2,
            source_lid = "slid" @ 34 + 2,
            raw_traffic = "raw_traffic" @ 36 + 4,
            flow_label = "flow_label" @ 40 + 4,
            reversible = "reversible" @ 44 + 4,
            mtu = "mtu" @ 48 + 4,
            pkey = "pkey" @ 52 + 2,
            hop_limit = "hop_limit" @ 54 + 1,
            traffic_class = "traffic_class" @ 55 + 1,
            path_count = "numb_path" @ 56 + 1,
            service_level = "sl" @ 57 + 1,
            mtu_selector = "mtu_selector" @ 58 + 1,
            rate_selector = "rate_selector" @ 59 + 1,
            rate = "rate" @ 60 + 1,
            packet_life_time_selector = "packet_life_time_selector" @ 61 + 1,
            packet_life_time = "packet_life_time" @ 62 + 1,
            preference = "preference" @ 63 + 1,
        }
        ServiceRecord = "ib_user_service_rec" since (7, 2), size 176, align 1 for 8 {
            id = "id" @ 0 + 8,
            gid = "gid" @ 8 + 16,
            pkey = "pkey" @ 24 + 2,
            reserved = "reserved" @ 26 + 2,
            lease = "lease" @ 28 + 4,
            key = "key" @ 32 + 16,
            name = "name" @ 48 + 64,
            data_8 = "data_8" @ 112 + 16,
            data_16 = "data_16" @ 128 + 16,
            data_32 = "data_32" @ 144 + 16,
            data_64 = "data_64" @ 160 + 16,
        }
    }
}

pub(super) mod verbs {
    //! What the verbs interface shares.

    use crate::{AhAttr, GlobalRoute, QpAttr};

    layouts! {
        in kernel "rdma/ib_user_verbs.h";

        GlobalRoute = "ib_uverbs_global_route", size 24, align 4 {
            destination_gid = "dgid" @ 0 + 16,
            flow_label = "flow_label" @ 16 + 4,
            source_gid_index = "sgid_index" @ 20 + 1,
            hop_limit = "hop_limit" @ 21 + 1,
            traffic_class = "traffic_class" @ 22 + 1,
            reserved = "reserved" @ 23 + 1,
        }
        AhAttr = "ib_uverbs_ah_attr", size 32, align 4 {
            grh = "grh" @ 0 + 24,
            destination_lid = "dlid" @ 24 + 2,
            service_level = "sl" @ 26 + 1,
            source_path_bits = "src_path_bits" @ 27 + 1,
            static_rate = "static_rate" @ 28 + 1,
            is_global = "is_global" @ 29 + 1,
            port_number = "port_num" @ 30 + 1,
            reserved = "reserved" @ 31 + 1,
        }
        QpAttr = "ib_uverbs_qp_attr", size 144, align 4 {
            mask = "qp_attr_mask" @ 0 + 4,
            qp_state = "qp_state" @ 4 + 4,
            current_qp_state = "cur_qp_state" @ 8 + 4,
            path_mtu = "path_mtu" @ 12 + 4,
            path_migration_state = "path_mig_state" @ 16 + 4,
            qkey = "qkey" @ 20 + 4,
            rq_psn = "rq_psn" @ 24 + 4,
            sq_psn = "sq_psn" @ 28 + 4,
            destination_qp_number = "dest_qp_num" @ 32 + 4,
            access_flags = "qp_access_flags" @ 36 + 4,
            ah_attr = "ah_attr" @ 40 + 32,
            alternate_ah_attr = "alt_ah_attr" @ 72 + 32,
            max_send_wr = "max_send_wr" @ 104 + 4,
            max_recv_wr = "max_recv_wr" @ 108 + 4,
            max_send_sge = "max_send_sge" @ 112 + 4,
            max_recv_sge = "max_recv_sge" @ 116 + 4,
            max_inline_data = "max_inline_data" @ 120 + 4,
            pkey_index = "pkey_index" @ 124 + 2,
            alternate_pkey_index = "alt_pkey_index" @ 126 + 2,
            en_sqd_async_notify = "en_sqd_async_notify" @ 128 + 1,
            sq_draining = "sq_draining" @ 129 + 1,
            max_rd_atomic = "max_rd_atomic" @ 130 + 1,
            max_destination_rd_atomic = "max_dest_rd_atomic" @ 131 + 1,
            min_rnr_timer = "min_rnr_timer" @ 132 + 1,
            port_number = "port_num" @ 133 + 1,
            timeout = "timeout" @ 134 + 1,
            retry_count = "retry_cnt" @ 135 + 1,
            rnr_retry = "rnr_retry" @ 136 + 1,
            alternate_port_number = "alt_port_num" @ 137 + 1,
            alternate_timeout = "alt_timeout" @ 138 + 1,
            reserved = "reserved" @ 139 + 5,
        }
    }
}

pub(super) mod in4 {
    //! IPv4 addresses.

    use crate::SockaddrIn;

    layouts! {
        in kernel "linux/in.h";

        SockaddrIn = "sockaddr_in", size 16, align 4 {
            family = "sin_family" @ 0 + 2,
            port = "sin_port" @ 2 + 2,
            addr = "sin_addr" @ 4 + 4,
            zero = "sin_zero" @ 8 + 8,
        }
    }
}

pub(super) mod in6 {
    //! IPv6 addresses.

    use crate::SockaddrIn6;

    layouts! {
        in kernel "linux/in6.h";

        SockaddrIn6 = "sockaddr_in6", size 28, align 4 {
            family = "sin6_family" @ 0 + 2,
            port = "sin6_port" @ 2 + 2,
            flowinfo = "sin6_flowinfo" @ 4 + 4,
            addr = "sin6_addr" @ 8 + 16,
            scope_id = "sin6_scope_id" @ 24 + 4,
        }
    }
}

pub(super) mod storage {
    //! Room for an address of any family.

    use crate::SockaddrStorage;

    layouts! {
        in kernel "linux/socket.h";

        SockaddrStorage = "__kernel_sockaddr_storage", size 128, align 8 {
            family = "ss_family" @ 0 + 2,
            data = "__data" @ 2 + 126,
        }
    }
}
