// Connections that carry messages, and their peer.
#include "bench.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVES 256
#define SENDS 32

// A connection with receive requests posted.
struct connection {
	struct rdma_cm_id *id;
	struct ibv_mr *region;
	// RECEIVES messages, then one to send.
	char *bytes;
};

static bool post_receive(struct connection *connection, uint64_t index)
{
	char *start = connection->bytes + index * SIZE;

	return !rdma_post_recv(connection->id, (void *)index, start, SIZE, connection->region);
}

static void prepare(struct connection *connection)
{
	size_t size = SIZE * (RECEIVES + 1);

	connection->bytes = calloc(1, size);
	connection->region = rdma_reg_msgs(connection->id, connection->bytes, size);
	check(!connection->region, "rdma_reg_msgs");
	for (uint64_t i = 0; i < RECEIVES; i++)
		check(!post_receive(connection, i), "rdma_post_recv");
}

static void finish(struct connection *connection)
{
	check(rdma_dereg_mr(connection->region), "rdma_dereg_mr");
	rdma_destroy_ep(connection->id);
	free(connection->bytes);
}

static bool send_message(struct connection *connection)
{
	struct ibv_wc wc;
	char *start = connection->bytes + RECEIVES * SIZE;

	return !rdma_post_send(connection->id, NULL, start, SIZE, connection->region,
			       IBV_SEND_SIGNALED) &&
	       rdma_get_send_comp(connection->id, &wc) == 1 && !wc.status;
}

// Whether a message has come. After the last one of a client that has gone, siw takes no
// further receive request.
static bool receive_message(struct connection *connection)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(connection->id, &wc) != 1 || wc.status)
		return false;
	post_receive(connection, wc.wr_id);
	return true;
}

static void trip(struct connection *connection)
{
	check(!send_message(connection), "send a message");
	check(!receive_message(connection), "rdma_get_recv_comp");
}

static MEASURED void measured_section_trips(struct connection *connection, uint32_t count)
{
	while (count--)
		trip(connection);
}

static struct ibv_qp_init_attr queue_pair(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static void run_round_trip(struct target target, uint32_t count)
{
	struct ibv_qp_init_attr attr = queue_pair();
	struct connection connection;

	check(rdma_create_ep(&connection.id, numeric(target, 0), NULL, &attr), "rdma_create_ep");
	prepare(&connection);
	check(rdma_connect(connection.id, NULL), "rdma_connect");
	trip(&connection);
	section_begin();
	measured_section_trips(&connection, count);
	section_end(count);
	finish(&connection);
}

static bool echoes;

// A thread for each client. Waits for messages for ever: the peer is killed.
static void *serve_one(void *argument)
{
	struct connection connection = { .id = argument };

	prepare(&connection);
	// A client that has gone already concerns no other.
	if (!rdma_accept(connection.id, NULL)) {
		while (receive_message(&connection)) {
			if (echoes && !send_message(&connection))
				break;
		}
	}
	finish(&connection);
	return NULL;
}

void serve_messages(const char *address, bool echo)
{
	struct target target = { address, "0" };
	struct rdma_addrinfo *found = numeric(target, RAI_PASSIVE);
	struct ibv_qp_init_attr attr = queue_pair();
	struct rdma_cm_id *listener, *id;
	pthread_t thread;

	echoes = echo;
	check(rdma_create_ep(&listener, found, NULL, &attr), "rdma_create_ep");
	check(rdma_listen(listener, 128), "rdma_listen");
	printf("%d\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	for (;;) {
		check(rdma_get_request(listener, &id), "rdma_get_request");
		check(pthread_create(&thread, NULL, serve_one, id), "pthread_create");
		pthread_detach(thread);
	}
}

const struct workload message_workloads[] = {
	{ "round-trip", run_round_trip },
	{ NULL, NULL },
};
