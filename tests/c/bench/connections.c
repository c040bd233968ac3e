// Making connections, and the peer that accepts them.
#include "bench.h"

#include <netinet/in.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 64
// As the Rust library's default for messages.
#define MESSAGES 32
#define MESSAGE_SIZE 4096

static struct ibv_qp_init_attr queue_pair(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = MESSAGES,
			.max_recv_wr = MESSAGES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
}

// A connection with memory for messages, if it carries any.
struct client {
	struct rdma_cm_id *id;
	struct ibv_mr *region;
};

static struct ibv_mr *prepare(struct rdma_cm_id *id)
{
	size_t size = 2 * MESSAGES * MESSAGE_SIZE;
	char *bytes = calloc(1, size);
	struct ibv_mr *region = rdma_reg_msgs(id, bytes, size);

	check(!region, "rdma_reg_msgs");
	for (int i = 0; i < MESSAGES; i++)
		check(rdma_post_recv(id, NULL, bytes + i * MESSAGE_SIZE, MESSAGE_SIZE, region),
		      "rdma_post_recv");
	return region;
}

static struct client connect_to(struct rdma_addrinfo *found, bool messages)
{
	struct ibv_qp_init_attr attr = queue_pair();
	struct client client = { 0 };

	check(rdma_create_ep(&client.id, found, NULL, &attr), "rdma_create_ep");
	if (messages)
		client.region = prepare(client.id);
	check(rdma_connect(client.id, NULL), "rdma_connect");
	return client;
}

static void close_client(struct client client)
{
	if (client.region) {
		free(client.region->addr);
		check(rdma_dereg_mr(client.region), "rdma_dereg_mr");
	}
	rdma_destroy_ep(client.id);
}

static MEASURED struct client measured_section_connect(struct rdma_addrinfo *found, bool messages)
{
	return connect_to(found, messages);
}

// Beside a connection that keeps the device's protection domain.
static void in_turn(struct target target, uint32_t count, bool messages)
{
	struct rdma_addrinfo *found = numeric(target, 0);
	struct client first = connect_to(found, messages);

	while (count--) {
		section_begin();
		struct client client = measured_section_connect(found, messages);
		section_end(1);
		close_client(client);
	}
	close_client(first);
	rdma_freeaddrinfo(found);
}

static void run_connect(struct target target, uint32_t count)
{
	in_turn(target, count, false);
}

static void run_connect_messages(struct target target, uint32_t count)
{
	in_turn(target, count, true);
}

static void beside(struct target target, uint32_t live, uint32_t count)
{
	struct rdma_addrinfo *found = numeric(target, 0);
	struct client *clients = calloc(live, sizeof *clients);

	for (uint32_t i = 0; i < live; i++)
		clients[i] = connect_to(found, false);
	in_turn(target, count, false);
	for (uint32_t i = 0; i < live; i++)
		close_client(clients[i]);
	free(clients);
	rdma_freeaddrinfo(found);
}

static void run_at_10(struct target target, uint32_t count)
{
	beside(target, 10, count);
}

static void run_at_100(struct target target, uint32_t count)
{
	beside(target, 100, count);
}

static void run_at_1000(struct target target, uint32_t count)
{
	beside(target, 1000, count);
}

static void run_at_10000(struct target target, uint32_t count)
{
	beside(target, 10000, count);
}

static MEASURED void measured_section_connect_all(struct rdma_addrinfo *found,
						  struct client *clients, uint32_t count,
						  bool messages)
{
	for (uint32_t i = 0; i < count; i++)
		clients[i] = connect_to(found, messages);
}

// Connections that do nothing.
static void idle(struct target target, uint32_t count, bool messages)
{
	struct rdma_addrinfo *found = numeric(target, 0);
	struct client first = connect_to(found, messages);
	struct client *clients = calloc(count, sizeof *clients);

	section_begin();
	measured_section_connect_all(found, clients, count, messages);
	section_end(count);
	for (uint32_t i = 0; i < count; i++)
		close_client(clients[i]);
	close_client(first);
	free(clients);
	rdma_freeaddrinfo(found);
}

static void run_idle(struct target target, uint32_t count)
{
	idle(target, count, false);
}

static void run_idle_messages(struct target target, uint32_t count)
{
	idle(target, count, true);
}

static struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	check(!channel, "rdma_create_event_channel");
	return channel;
}

// Takes the next step of a client. Returns whether it is connected.
static bool step(struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
	struct ibv_qp_init_attr attr = queue_pair();
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		check(rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		check(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
		check(rdma_connect(id, &param), "rdma_connect");
		return false;
	case RDMA_CM_EVENT_ESTABLISHED:
		return true;
	default:
		check(true, rdma_event_str(event));
		return false;
	}
}

static MEASURED void measured_section_at_once(struct rdma_event_channel *channel,
					      struct rdma_addrinfo *found, struct rdma_cm_id **ids,
					      uint32_t count)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	for (uint32_t i = 0; i < count; i++) {
		check(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		check(rdma_resolve_addr(ids[i], NULL, found->ai_dst_addr, TIMEOUT_MS),
		      "rdma_resolve_addr");
	}
	for (uint32_t connected = 0; connected < count;) {
		check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		id = event->id;
		type = event->event;
		check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
		connected += step(id, type);
	}
}

static void close_all(struct rdma_cm_id **ids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		rdma_destroy_qp(ids[i]);
		check(rdma_destroy_id(ids[i]), "rdma_destroy_id");
	}
}

static void run_at_once(struct target target, uint32_t count)
{
	struct rdma_addrinfo *found = numeric(target, RAI_NOROUTE), *to_first = numeric(target, 0);
	struct client first = connect_to(to_first, false);
	struct rdma_cm_id *ids[AT_ONCE];

	for (uint32_t done = 0; done + AT_ONCE <= count; done += AT_ONCE) {
		struct rdma_event_channel *channel = open_channel();

		section_begin();
		measured_section_at_once(channel, found, ids, AT_ONCE);
		section_end(AT_ONCE);
		close_all(ids, AT_ONCE);
		rdma_destroy_event_channel(channel);
	}
	close_client(first);
	rdma_freeaddrinfo(to_first);
	rdma_freeaddrinfo(found);
}

static void accept_one(struct rdma_cm_id *id, bool messages)
{
	struct ibv_qp_init_attr attr = queue_pair();
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	check(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	if (messages)
		id->context = prepare(id);
	else
		id->context = NULL;
	// The client may have gone.
	rdma_accept(id, &param);
}

static void destroy(struct rdma_cm_id *id)
{
	struct ibv_mr *region = id->context;

	rdma_destroy_qp(id);
	if (region) {
		free(region->addr);
		rdma_dereg_mr(region);
	}
	rdma_destroy_id(id);
}

void serve_connections(const char *address, bool messages)
{
	struct target target = { address, "0" };
	struct rdma_addrinfo *found = numeric(target, RAI_PASSIVE);
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;

	check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(listener, found->ai_src_addr), "rdma_bind_addr");
	check(rdma_listen(listener, 128), "rdma_listen");
	printf("%d\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	for (;;) {
		check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;

		check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
		switch (type) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			accept_one(id, messages);
			break;
		case RDMA_CM_EVENT_DISCONNECTED:
			rdma_disconnect(id);
			destroy(id);
			break;
		case RDMA_CM_EVENT_CONNECT_ERROR:
		case RDMA_CM_EVENT_UNREACHABLE:
		case RDMA_CM_EVENT_REJECTED:
			destroy(id);
			break;
		default:
			break;
		}
	}
}

const struct workload connection_workloads[] = {
	{ "connect", run_connect },
	{ "connect-messages", run_connect_messages },
	{ "connect-64-at-once", run_at_once },
	{ "connect-at-10", run_at_10 },
	{ "connect-at-100", run_at_100 },
	{ "connect-at-1000", run_at_1000 },
	{ "connect-at-10000", run_at_10000 },
	{ "idle-connections", run_idle },
	{ "idle-connections-messages", run_idle_messages },
	{ NULL, NULL },
};
