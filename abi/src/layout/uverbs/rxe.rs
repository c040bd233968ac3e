//! What rxe adds.

use crate::uverbs::Sge;
use crate::uverbs::rxe::{
    Ah, DmaInfo, MapInfo, QpQueues, QueueHeader, RecvWqe, SendWqe, SendWr, SrqQueue, SrqResize,
};

layouts! {
    in kernel "rdma/rdma_user_rxe.h";

    MapInfo = "mminfo", size 16, align 8 {
        offset = "offset" @ 0 + 8,
        size = "size" @ 8 + 4,
        padding = "pad" @ 12 + 4,
    }
    QpQueues = "rxe_create_qp_resp", size 32, align 8 {
        receive = "rq_mi" @ 0 + 16,
        send = "sq_mi" @ 16 + 16,
    }
    Ah = "rxe_create_ah_resp", size 8, align 4 {
        number = "ah_num" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
    }
    SrqQueue = "rxe_create_srq_resp", size 24, align 8 {
        queue = "mi" @ 0 + 16,
        number = "srq_num" @ 16 + 4,
        reserved = "reserved" @ 20 + 4,
    }
    SrqResize = "rxe_modify_srq_cmd", size 8, align 8 {
        map_info_address = "mmap_info_addr" @ 0 + 8,
    }
    QueueHeader = "rxe_queue_buf", size 384, align 4 {
        log2_elem_size = "log2_elem_size" @ 0 + 4,
        index_mask = "index_mask" @ 4 + 4,
        padding_1 = "pad_1" @ 8 + 120,
        producer_index = "producer_index" @ 128 + 4,
        padding_2 = "pad_2" @ 132 + 124,
        consumer_index = "consumer_index" @ 256 + 4,
        padding_3 = "pad_3" @ 260 + 124,
    } + views {
        "data" @ 384 + 0,
    }
    Sge = "rxe_sge", size 16, align 8 {
        address = "addr" @ 0 + 8,
        length = "length" @ 8 + 4,
        lkey = "lkey" @ 12 + 4,
    }
    DmaInfo = "rxe_dma_info", size 24, align 4 for 8 {
        length = "length" @ 0 + 4,
        remaining = "resid" @ 4 + 4,
        current_sge = "cur_sge" @ 8 + 4,
        sge_count = "num_sge" @ 12 + 4,
        sge_offset = "sge_offset" @ 16 + 4,
        reserved = "reserved" @ 20 + 4,
    } + views {
        "inline_data" @ 24 + 0,
        "sge" @ 24 + 0,
    }
    SendWr = "rxe_send_wr", size 144, align 8 {
        id = "wr_id" @ 0 + 8,
        reserved = "reserved" @ 8 + 4,
        opcode = "opcode" @ 12 + 4,
        flags = "send_flags" @ 16 + 4,
        immediate_or_key = "ex" @ 20 + 4,
        target = "wr" @ 24 + 120,
    } + views {
        "ex.imm_data" @ 20 + 4,
        "ex.invalidate_rkey" @ 20 + 4,
        "wr.rdma" @ 24 + 16,
        "wr.rdma.remote_addr" @ 24 + 8,
        "wr.rdma.rkey" @ 32 + 4,
        "wr.atomic" @ 24 + 32,
        "wr.atomic.remote_addr" @ 24 + 8,
        "wr.atomic.compare_add" @ 32 + 8,
        "wr.atomic.swap" @ 40 + 8,
        "wr.atomic.rkey" @ 48 + 4,
        "wr.ud" @ 24 + 120,
        "wr.ud.remote_qpn" @ 24 + 4,
        "wr.ud.remote_qkey" @ 28 + 4,
        "wr.ud.pkey_index" @ 32 + 2,
        "wr.ud.ah_num" @ 36 + 4,
    }
    SendWqe = "rxe_send_wqe", size 208, align 8 {
        wr = "wr" @ 0 + 144,
        status = "status" @ 144 + 4,
        state = "state" @ 148 + 4,
        iova = "iova" @ 152 + 8,
        mask = "mask" @ 160 + 4,
        first_psn = "first_psn" @ 164 + 4,
        last_psn = "last_psn" @ 168 + 4,
        ack_length = "ack_length" @ 172 + 4,
        ssn = "ssn" @ 176 + 4,
        has_rd_atomic = "has_rd_atomic" @ 180 + 4,
        dma = "dma" @ 184 + 24,
    }
    RecvWqe = "rxe_recv_wqe", size 40, align 8 {
        id = "wr_id" @ 0 + 8,
        reserved = "reserved" @ 8 + 4,
        padding = "padding" @ 12 + 4,
        dma = "dma" @ 16 + 24,
    }
}
