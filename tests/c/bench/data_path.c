// Posting and polling.
#include "bench.h"

#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <unistd.h>

#define RECEIVES 256
// Longer than the device needs for a batch.
#define PAUSE_US 100000

static struct rdma_cm_id *connect_to(struct target target)
{
	struct rdma_addrinfo *found = numeric(target, 0);
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
	rdma_freeaddrinfo(found);
	return id;
}

// Disconnects without a wait for the peer.
static void close_connection(struct rdma_cm_id *id, struct ibv_mr *region)
{
	void *bytes = region->addr;

	check(rdma_dereg_mr(region), "rdma_dereg_mr");
	rdma_destroy_ep(id);
	free(bytes);
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

static MEASURED bool measured_section_poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int polled = ibv_poll_cq(cq, 1, wc);

	check(polled < 0 || (polled && wc->status), "ibv_poll_cq");
	return polled;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	check(ibv_post_send(qp, wr, &bad), "ibv_post_send");
}

static void poll(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	int polled;

	while (!(polled = ibv_poll_cq(cq, 1, &wc)))
		usleep(PAUSE_US);
	check(polled != 1 || wc.status, "ibv_poll_cq");
}

static void sends(struct target target, uint32_t count, bool posts)
{
	struct rdma_cm_id *id = connect_to(target);
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
			for (bool polled = false; !polled;) {
				section_begin();
				polled = measured_section_poll(id->send_cq, &wc);
				section_end(1);
				if (!polled)
					usleep(PAUSE_US);
			}
		}
	}
	close_connection(id, region);
}

static void run_post_send(struct target target, uint32_t count)
{
	sends(target, count, true);
}

static void run_poll_send(struct target target, uint32_t count)
{
	sends(target, count, false);
}

static MEASURED void measured_section_post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	check(ibv_post_recv(qp, wr, &bad), "ibv_post_recv");
}

static void run_post_receive(struct target target, uint32_t count)
{
	struct rdma_cm_id *id = connect_to(target);
	struct ibv_mr *region;
	char *bytes = memory(id, SIZE * count, &region);

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_sge sge = { (uintptr_t)bytes + i * SIZE, SIZE, region->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		section_begin();
		measured_section_post_receive(id->qp, &wr);
		section_end(1);
	}
	close_connection(id, region);
}

static MEASURED void measured_section_next(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(id, &wc) != 1 || wc.status, "rdma_get_send_comp");
}

static void run_next(struct target target, uint32_t count)
{
	struct rdma_cm_id *id = connect_to(target);
	struct ibv_mr *region;
	char *bytes = memory(id, SIZE, &region);

	while (count--) {
		check(rdma_post_send(id, NULL, bytes, SIZE, region, IBV_SEND_SIGNALED), "rdma_post_send");
		section_begin();
		measured_section_next(id);
		section_end(1);
	}
	close_connection(id, region);
}

const struct workload data_path_workloads[] = {
	{ "post-send", run_post_send },
	{ "poll-send", run_poll_send },
	{ "post-receive", run_post_receive },
	{ "next-completion", run_next },
	{ NULL, NULL },
};
