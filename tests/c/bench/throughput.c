// Much data, with several requests in flight.
#include "bench.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Requests in flight.
#define DEPTH 8
#define RECEIVES 16
#define KIB_64 (64 << 10)
#define MIB (1 << 20)

// The peer's memory, in the private data of its reply.
struct remote {
	uint64_t address;
	uint32_t key;
};

static struct ibv_qp_init_attr queue_pair(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_conn_param parameters(struct remote *remote)
{
	return (struct rdma_conn_param){
		.private_data = remote,
		.private_data_len = remote ? sizeof *remote : 0,
		.responder_resources = DEPTH,
		.initiator_depth = DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static struct ibv_mr *memory(struct rdma_cm_id *id, size_t size)
{
	struct ibv_mr *region = ibv_reg_mr(id->pd, calloc(1, size), size,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ);

	check(!region, "ibv_reg_mr");
	return region;
}

struct transfer {
	struct rdma_cm_id *id;
	struct ibv_mr *region;
	struct remote remote;
	enum ibv_wr_opcode opcode;
	uint32_t size;
};

static void start(struct transfer *transfer, uint32_t slot)
{
	struct ibv_sge sge = {
		(uintptr_t)transfer->region->addr + (size_t)slot * transfer->size,
		transfer->size,
		transfer->region->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = transfer->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { transfer->remote.address, transfer->remote.key },
	}, *bad;

	check(ibv_post_send(transfer->id->qp, &wr, &bad), "ibv_post_send");
}

static void finish(struct transfer *transfer)
{
	struct ibv_wc wc;

	check(rdma_get_send_comp(transfer->id, &wc) != 1 || wc.status, "rdma_get_send_comp");
}

static MEASURED void measured_section_transfers(struct transfer *transfer, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i >= DEPTH)
			finish(transfer);
		start(transfer, i % DEPTH);
	}
	for (uint32_t i = 0; i < count && i < DEPTH; i++)
		finish(transfer);
}

static void transfer(struct target target, uint32_t count, enum ibv_wr_opcode opcode, uint32_t size)
{
	struct rdma_addrinfo *found = numeric(target, 0);
	struct ibv_qp_init_attr attr = queue_pair();
	struct rdma_conn_param param = parameters(NULL);
	struct transfer transfer = { .opcode = opcode, .size = size };

	check(rdma_create_ep(&transfer.id, found, NULL, &attr), "rdma_create_ep");
	transfer.region = memory(transfer.id, (size_t)DEPTH * size);
	check(rdma_connect(transfer.id, &param), "rdma_connect");
	memcpy(&transfer.remote, transfer.id->event->param.conn.private_data, sizeof transfer.remote);
	section_begin();
	measured_section_transfers(&transfer, count);
	section_end(count);
	free(transfer.region->addr);
	check(rdma_dereg_mr(transfer.region), "rdma_dereg_mr");
	rdma_destroy_ep(transfer.id);
	rdma_freeaddrinfo(found);
}

static void run_send_64k(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_SEND, KIB_64);
}

static void run_write_64k(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_RDMA_WRITE, KIB_64);
}

static void run_read_64k(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_RDMA_READ, KIB_64);
}

static void run_send_1m(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_SEND, MIB);
}

static void run_write_1m(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_RDMA_WRITE, MIB);
}

static void run_read_1m(struct target target, uint32_t count)
{
	transfer(target, count, IBV_WR_RDMA_READ, MIB);
}

// A thread for each client. Waits for messages for ever: the peer is killed.
static void *serve_one(void *argument)
{
	struct rdma_cm_id *id = argument;
	struct ibv_mr *region = memory(id, MIB), *receives = memory(id, (size_t)RECEIVES * MIB);
	struct remote remote = { (uintptr_t)region->addr, region->rkey };
	struct rdma_conn_param param = parameters(&remote);
	struct ibv_wc wc = { 0 };

	for (uint64_t i = 0; i < RECEIVES; i++)
		check(rdma_post_recv(id, (void *)i, (char *)receives->addr + i * MIB, MIB, receives),
		      "rdma_post_recv");
	// A client that has gone already concerns no other.
	if (rdma_accept(id, &param))
		return NULL;
	while (rdma_get_recv_comp(id, &wc) == 1 && !wc.status)
		// siw takes none after the last message of a client that has gone.
		rdma_post_recv(id, (void *)wc.wr_id,
			       (char *)receives->addr + wc.wr_id * MIB, MIB, receives);
	return NULL;
}

void serve_memory(const char *address)
{
	struct target target = { address, "0" };
	struct rdma_addrinfo *found = numeric(target, RAI_PASSIVE);
	struct ibv_qp_init_attr attr = queue_pair();
	struct rdma_cm_id *listener, *id;
	pthread_t thread;

	check(rdma_create_ep(&listener, found, NULL, &attr), "rdma_create_ep");
	check(rdma_listen(listener, 16), "rdma_listen");
	printf("%d\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	for (;;) {
		check(rdma_get_request(listener, &id), "rdma_get_request");
		check(pthread_create(&thread, NULL, serve_one, id), "pthread_create");
		pthread_detach(thread);
	}
}

const struct workload throughput_workloads[] = {
	{ "send-64k", run_send_64k },
	{ "write-64k", run_write_64k },
	{ "read-64k", run_read_64k },
	{ "send-1m", run_send_1m },
	{ "write-1m", run_write_1m },
	{ "read-1m", run_read_1m },
	{ NULL, NULL },
};
