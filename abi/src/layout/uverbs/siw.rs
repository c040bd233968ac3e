//! What siw adds.

use crate::uverbs::Sge;
use crate::uverbs::siw::{
    Context, CqControl, CqQueue, Cqe, MrKey, MrTag, QpQueues, Rqe, Sqe, SrqQueue,
};

layouts! {
    in kernel "rdma/siw-abi.h";

    Context = "siw_uresp_alloc_ctx", size 8, align 4 {
        device_id = "dev_id" @ 0 + 4,
        padding = "pad" @ 4 + 4,
    }
    CqQueue = "siw_uresp_create_cq", size 16, align 8 {
        id = "cq_id" @ 0 + 4,
        entries = "num_cqe" @ 4 + 4,
        offset = "cq_key" @ 8 + 8,
    }
    QpQueues = "siw_uresp_create_qp", size 32, align 8 {
        id = "qp_id" @ 0 + 4,
        send_entries = "num_sqe" @ 4 + 4,
        receive_entries = "num_rqe" @ 8 + 4,
        padding = "pad" @ 12 + 4,
        send_offset = "sq_key" @ 16 + 8,
        receive_offset = "rq_key" @ 24 + 8,
    }
    SrqQueue = "siw_uresp_create_srq", size 16, align 8 {
        entries = "num_rqe" @ 0 + 4,
        padding = "pad" @ 4 + 4,
        offset = "srq_key" @ 8 + 8,
    }
    MrKey = "siw_ureq_reg_mr", size 8, align 1 for 4 {
        key = "stag_key" @ 0 + 1,
        reserved = "reserved" @ 1 + 3,
        padding = "pad" @ 4 + 4,
    }
    MrTag = "siw_uresp_reg_mr", size 8, align 4 {
        stag = "stag" @ 0 + 4,
        padding = "pad" @ 4 + 4,
    }
    Sge = "siw_sge", size 16, align 8 {
        address = "laddr" @ 0 + 8,
        length = "length" @ 8 + 4,
        lkey = "lkey" @ 12 + 4,
    }
    Sqe = "siw_sqe", size 120, align 8 {
        id = "id" @ 0 + 8,
        flags = "flags" @ 8 + 2,
        sge_count = "num_sge" @ 10 + 1,
        opcode = "opcode" @ 11 + 1,
        rkey = "rkey" @ 12 + 4,
        remote_address = "raddr" @ 16 + 8,
        sges = "sge" @ 24 + 96,
    }
    Rqe = "siw_rqe", size 112, align 8 {
        id = "id" @ 0 + 8,
        flags = "flags" @ 8 + 2,
        sge_count = "num_sge" @ 10 + 1,
        opcode = "opcode" @ 11 + 1,
        unused = "unused" @ 12 + 4,
        sges = "sge" @ 16 + 96,
    }
    Cqe = "siw_cqe", size 32, align 8 {
        id = "id" @ 0 + 8,
        flags = "flags" @ 8 + 1,
        opcode = "opcode" @ 9 + 1,
        status = "status" @ 10 + 2,
        bytes = "bytes" @ 12 + 4,
        immediate = "imm_data" @ 16 + 8,
        qp_number = "qp_id" @ 24 + 8,
    } + views {
        "inval_stag" @ 16 + 4,
    }
    CqControl = "siw_cq_ctrl", size 8, align 4 {
        flags = "flags" @ 0 + 4,
        padding = "pad" @ 4 + 4,
    }
}
