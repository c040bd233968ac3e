//! What the kernel's exported headers leave out and rdma-core's have.

pub(super) mod ib {
    //! Native InfiniBand addresses.

    use crate::SockaddrIb;

    layouts! {
        in user_space "infiniband/ib.h";

        SockaddrIb = "sockaddr_ib", size 48, align 8 {
            family = "sib_family" @ 0 + 2,
            pkey = "sib_pkey" @ 2 + 2,
            flowinfo = "sib_flowinfo" @ 4 + 4,
            addr = "sib_addr" @ 8 + 16,
            service_id = "sib_sid" @ 24 + 8,
            service_id_mask = "sib_sid_mask" @ 32 + 8,
            scope_id = "sib_scope_id" @ 40 + 8,
        }
    }
}

pub(super) mod sa {
    //! Path records in wire format.

    use crate::PathRecord;

    layouts! {
        in user_space "infiniband/sa.h";

        PathRecord = "ibv_path_record", size 64, align 1 for 8 {
            service_id = "service_id" @ 0 + 8,
            destination_gid = "dgid" @ 8 + 16,
            source_gid = "sgid" @ 24 + 16,
            destination_lid = "dlid" @ 40 + 2,
            source_lid = "slid" @ 42 + 2,
            flow_label_hop_limit = "flowlabel_hoplimit" @ 44 + 4,
            traffic_class = "tclass" @ 48 + 1,
            reversible_path_count = "reversible_numpath" @ 49 + 1,
            pkey = "pkey" @ 50 + 2,
            qos_class_service_level = "qosclass_sl" @ 52 + 2,
            mtu_selector_mtu = "mtu" @ 54 + 1,
            rate_selector_rate = "rate" @ 55 + 1,
            life_selector_packet_life_time = "packetlifetime" @ 56 + 1,
            preference = "preference" @ 57 + 1,
            reserved = "reserved" @ 58 + 6,
        }
    }
}
