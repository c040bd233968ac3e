//! What it takes to carry data.

use crate::uverbs::{
    AsyncEvent, AttachMulticast, CompletionEvent, CreateAh, CreateAhResponse,
    CreateCompletionChannel, CreateCompletionChannelResponse, CreateSrq, CreateSrqResponse,
    DeregMr, DestroyAh, DestroySrq, DestroySrqResponse, DetachMulticast, ModifySrq, PostSend,
    PostSendResponse, QuerySrq, QuerySrqResponse, RegMr, RegMrResponse, ReqNotifyCq, ReregMr,
    ReregMrResponse, ResizeCq, ResizeCqResponse, Sge, WorkCompletion,
};

layouts! {
    in kernel "rdma/ib_user_verbs.h";

    CreateAh = "ib_uverbs_create_ah", size 56, align 8 {
        response = "response" @ 0 + 8,
        user_handle = "user_handle" @ 8 + 8,
        pd = "pd_handle" @ 16 + 4,
        reserved = "reserved" @ 20 + 4,
        attr = "attr" @ 24 + 32,
    }
    CreateAhResponse = "ib_uverbs_create_ah_resp", size 4, align 4 {
        handle = "ah_handle" @ 0 + 4,
    }
    DestroyAh = "ib_uverbs_destroy_ah", size 4, align 4 {
        handle = "ah_handle" @ 0 + 4,
    }
    RegMr = "ib_uverbs_reg_mr", size 40, align 8 {
        response = "response" @ 0 + 8,
        start = "start" @ 8 + 8,
        length = "length" @ 16 + 8,
        device_address = "hca_va" @ 24 + 8,
        pd = "pd_handle" @ 32 + 4,
        access = "access_flags" @ 36 + 4,
    }
    RegMrResponse = "ib_uverbs_reg_mr_resp", size 12, align 4 {
        handle = "mr_handle" @ 0 + 4,
        lkey = "lkey" @ 4 + 4,
        rkey = "rkey" @ 8 + 4,
    }
    ReregMr = "ib_uverbs_rereg_mr", size 48, align 8 {
        response = "response" @ 0 + 8,
        handle = "mr_handle" @ 8 + 4,
        flags = "flags" @ 12 + 4,
        start = "start" @ 16 + 8,
        length = "length" @ 24 + 8,
        device_address = "hca_va" @ 32 + 8,
        pd = "pd_handle" @ 40 + 4,
        access = "access_flags" @ 44 + 4,
    }
    ReregMrResponse = "ib_uverbs_rereg_mr_resp", size 8, align 4 for 8 {
        lkey = "lkey" @ 0 + 4,
        rkey = "rkey" @ 4 + 4,
    }
    DeregMr = "ib_uverbs_dereg_mr", size 4, align 4 {
        handle = "mr_handle" @ 0 + 4,
    }
    CreateCompletionChannel = "ib_uverbs_create_comp_channel", size 8, align 8 {
        response = "response" @ 0 + 8,
    }
    CreateCompletionChannelResponse = "ib_uverbs_create_comp_channel_resp", size 4, align 4 {
        fd = "fd" @ 0 + 4,
    }
    ResizeCq = "ib_uverbs_resize_cq", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "cq_handle" @ 8 + 4,
        entries = "cqe" @ 12 + 4,
    }
    ResizeCqResponse = "ib_uverbs_resize_cq_resp", size 8, align 4 for 8 {
        entries = "cqe" @ 0 + 4,
        reserved = "reserved" @ 4 + 4,
    }
    ReqNotifyCq = "ib_uverbs_req_notify_cq", size 8, align 4 {
        handle = "cq_handle" @ 0 + 4,
        solicited_only = "solicited_only" @ 4 + 4,
    }
    PostSend = "ib_uverbs_post_send", size 24, align 8 {
        response = "response" @ 0 + 8,
        handle = "qp_handle" @ 8 + 4,
        wr_count = "wr_count" @ 12 + 4,
        sge_count = "sge_count" @ 16 + 4,
        wqe_size = "wqe_size" @ 20 + 4,
    }
    PostSendResponse = "ib_uverbs_post_send_resp", size 4, align 4 {
        bad_request = "bad_wr" @ 0 + 4,
    }
    AttachMulticast = "ib_uverbs_attach_mcast", size 24, align 4 for 8 {
        gid = "gid" @ 0 + 16,
        handle = "qp_handle" @ 16 + 4,
        lid = "mlid" @ 20 + 2,
        reserved = "reserved" @ 22 + 2,
    }
    DetachMulticast = "ib_uverbs_detach_mcast", size 24, align 4 for 8 {
        gid = "gid" @ 0 + 16,
        handle = "qp_handle" @ 16 + 4,
        lid = "mlid" @ 20 + 2,
        reserved = "reserved" @ 22 + 2,
    }
    CreateSrq = "ib_uverbs_create_srq", size 32, align 8 {
        response = "response" @ 0 + 8,
        user_handle = "user_handle" @ 8 + 8,
        pd = "pd_handle" @ 16 + 4,
        max_wr = "max_wr" @ 20 + 4,
        max_sge = "max_sge" @ 24 + 4,
        limit = "srq_limit" @ 28 + 4,
    }
    CreateSrqResponse = "ib_uverbs_create_srq_resp", size 16, align 4 {
        handle = "srq_handle" @ 0 + 4,
        max_wr = "max_wr" @ 4 + 4,
        max_sge = "max_sge" @ 8 + 4,
        number = "srqn" @ 12 + 4,
    }
    ModifySrq = "ib_uverbs_modify_srq", size 16, align 4 for 8 {
        handle = "srq_handle" @ 0 + 4,
        mask = "attr_mask" @ 4 + 4,
        max_wr = "max_wr" @ 8 + 4,
        limit = "srq_limit" @ 12 + 4,
    }
    QuerySrq = "ib_uverbs_query_srq", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "srq_handle" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    QuerySrqResponse = "ib_uverbs_query_srq_resp", size 16, align 4 {
        max_wr = "max_wr" @ 0 + 4,
        max_sge = "max_sge" @ 4 + 4,
        limit = "srq_limit" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    DestroySrq = "ib_uverbs_destroy_srq", size 16, align 8 {
        response = "response" @ 0 + 8,
        handle = "srq_handle" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    DestroySrqResponse = "ib_uverbs_destroy_srq_resp", size 4, align 4 {
        events_reported = "events_reported" @ 0 + 4,
    }
    CompletionEvent = "ib_uverbs_comp_event_desc", size 8, align 8 {
        user_handle = "cq_handle" @ 0 + 8,
    }
    AsyncEvent = "ib_uverbs_async_event_desc", size 16, align 8 {
        element = "element" @ 0 + 8,
        kind = "event_type" @ 8 + 4,
        reserved = "reserved" @ 12 + 4,
    }
    Sge = "ib_uverbs_sge", size 16, align 8 {
        address = "addr" @ 0 + 8,
        length = "length" @ 8 + 4,
        lkey = "lkey" @ 12 + 4,
    }
    WorkCompletion = "ib_uverbs_wc", size 48, align 8 {
        id = "wr_id" @ 0 + 8,
        status = "status" @ 8 + 4,
        opcode = "opcode" @ 12 + 4,
        vendor_error = "vendor_err" @ 16 + 4,
        byte_len = "byte_len" @ 20 + 4,
        immediate_or_key = "ex" @ 24 + 4,
        qp_number = "qp_num" @ 28 + 4,
        source_qp_number = "src_qp" @ 32 + 4,
        flags = "wc_flags" @ 36 + 4,
        pkey_index = "pkey_index" @ 40 + 2,
        source_lid = "slid" @ 42 + 2,
        service_level = "sl" @ 44 + 1,
        destination_path_bits = "dlid_path_bits" @ 45 + 1,
        port_number = "port_num" @ 46 + 1,
        reserved = "reserved" @ 47 + 1,
    } + views {
        "ex.imm_data" @ 24 + 4,
        "ex.invalidate_rkey" @ 24 + 4,
    }
}
