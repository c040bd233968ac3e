// Posting and polling.
#include "bench.h"

#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <unistd.h>

#define RECEIVES 256
#define PAUSE_US 30000

static struct rdma_cm_id *connect_to(struct place place)
{
	struct rdma_addrinfo *found = numeric(place, 0);
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	check(rdma_create_ep(&id, found, NULL, &attr), "rdma_create_ep");
	check(rdma_connect(id, NULL), "rdma_connect");
	return id;
}

static char *memory(struct rdma_cm_id *id, size_t size, struct ibv_mr **region)
{
	char *bytes = calloc(1, size);

	*region = rdma_reg_msgs(id, bytes, size);
	check(!*region, "rdma_reg_msgs");
	return bytes;
}

static MEASURED void measured_section_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	check(ibv_post_send(qp, wr, &bad), "ibv_post_send");
}

static MEASURED void measured_section_poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
	check(ibv_poll_cq(cq, 1, wc) != 1 || wc->status, "ibv_poll_cq");
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	check(ibv_post_send(qp, wr, &bad), "ibv_post_send");
}

static void poll(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	check(ibv_poll_cq(cq, 1, &wc) != 1 || wc.status, "ibv_poll_cq");
}

static void sends(struct place place, uint32_t count, bool posts)
{
	struct rdma_cm_id *id = connect_to(place);
	struct ibv_mr *region;
	char *bytes = memory(id, SIZE * BATCH, &region);

	for (uint32_t done = 0; done + BATCH <= count; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			struct ibv_sge sge = { (uintptr_t)bytes + i * SIZE, SIZE, region->lkey };
			struct ibv_send_wr wr = {
				.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
			};

			if (!posts) {
				post(id->qp, &wr);
				continue;
			}
			section_begin();
			measured_section_post_send(id->qp, &wr);
			section_end(1);
		}
		usleep(PAUSE_US);
		for (int i = 0; i < BATCH; i++) {
			struct ibv_wc wc;

			if (posts) {
				poll(id->send_cq);
				continue;
			}
			section_begin();
			measured_section_poll(id->send_cq, &wc);
			section_end(1);
		}
	}
}

static void run_post_send(struct place place, uint32_t count)
{
	sends(place, count, true);
}

static void run_poll_send(struct place place, uint32_t count)
{
	sends(place, count, false);
}

static MEASURED void measured_section_post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	check(ibv_post_recv(qp, wr, &bad), "ibv_post_recv");
}

static void run_post_receive(struct place place, uint32_t count)
{
	struct rdma_cm_id *id = connect_to(place);
	struct ibv_mr *region;
	char *bytes = memory(id, SIZE * count, &region);

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_sge sge = { (uintptr_t)bytes + i * SIZE, SIZE, region->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		section_begin();
		measured_section_post_receive(id->qp, &wr);
		section_end(1);
	}
}

static MEASURED void measured_section_next(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(id, &wc) != 1 || wc.status, "rdma_get_send_comp");
}

static void run_next(struct place place, uint32_t count)
{
	struct rdma_cm_id *id = connect_to(place);
	struct ibv_mr *region;
	char *bytes = memory(id, SIZE, &region);

	while (count--) {
		check(rdma_post_send(id, NULL, bytes, SIZE, region, IBV_SEND_SIGNALED), "rdma_post_send");
		section_begin();
		measured_section_next(id);
		section_end(1);
	}
}

const struct workload data_path_workloads[] = {
	{ "post-send", run_post_send },
	{ "poll-send", run_poll_send },
	{ "post-receive", run_post_receive },
	{ "next-completion", run_next },
	{ NULL, NULL },
};
