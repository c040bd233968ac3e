// Ids and their events.
#include "bench.h"

#include <poll.h>
#include <stdlib.h>

static struct rdma_event_channel *channel;
static struct rdma_addrinfo *found;
static struct sockaddr *destination;

static void open_channel(struct target target)
{
	channel = rdma_create_event_channel();
	check(!channel, "rdma_create_event_channel");
	target.port = "7471";
	found = numeric(target, RAI_NOROUTE);
	destination = found->ai_dst_addr;
}

static void close_channel(void)
{
	rdma_freeaddrinfo(found);
	rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id *create(void)
{
	struct rdma_cm_id *id;

	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

static void expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	check(event->event != type, "an unexpected event");
	check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
}

static struct rdma_cm_id *resolve(void)
{
	struct rdma_cm_id *id = create();

	check(rdma_resolve_addr(id, NULL, destination, TIMEOUT_MS), "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void resolve_and_destroy(void)
{
	check(rdma_destroy_id(resolve()), "rdma_destroy_id");
}

static MEASURED void measured_section_ids(uint32_t count)
{
	while (count--)
		resolve_and_destroy();
}

// Beside `live` idle ids of the channel, and one that keeps the device's protection domain.
static void beside(struct target target, uint32_t live, uint32_t count)
{
	struct rdma_cm_id **ids = calloc(live, sizeof *ids), *first;

	open_channel(target);
	for (uint32_t i = 0; i < live; i++)
		ids[i] = create();
	first = resolve();
	section_begin();
	measured_section_ids(count);
	section_end(count);
	for (uint32_t i = 0; i < live; i++)
		check(rdma_destroy_id(ids[i]), "rdma_destroy_id");
	check(rdma_destroy_id(first), "rdma_destroy_id");
	close_channel();
	free(ids);
}

static void run_id(struct target target, uint32_t count)
{
	beside(target, 0, count);
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

static MEASURED struct rdma_cm_id *measured_section_create(void)
{
	return create();
}

static MEASURED void measured_section_destroy(struct rdma_cm_id *id)
{
	check(rdma_destroy_id(id), "rdma_destroy_id");
}

static void run_create(struct target target, uint32_t count)
{
	open_channel(target);
	check(rdma_destroy_id(create()), "rdma_destroy_id");
	while (count--) {
		section_begin();
		struct rdma_cm_id *id = measured_section_create();
		section_end(1);
		check(rdma_destroy_id(id), "rdma_destroy_id");
	}
	close_channel();
}

static void run_destroy(struct target target, uint32_t count)
{
	open_channel(target);
	check(rdma_destroy_id(create()), "rdma_destroy_id");
	while (count--) {
		struct rdma_cm_id *id = create();

		section_begin();
		measured_section_destroy(id);
		section_end(1);
	}
	close_channel();
}

static MEASURED void measured_section_event(void)
{
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
}

// Beside an id that keeps the device's protection domain.
static void run_event(struct target target, uint32_t count)
{
	struct rdma_cm_id *first;

	open_channel(target);
	first = resolve();
	while (count--) {
		struct rdma_cm_id *id = create();

		check(rdma_resolve_addr(id, NULL, destination, TIMEOUT_MS), "rdma_resolve_addr");
		check(poll(&(struct pollfd){ channel->fd, POLLIN, 0 }, 1, -1) < 0, "poll");
		section_begin();
		measured_section_event();
		section_end(1);
		check(rdma_destroy_id(id), "rdma_destroy_id");
	}
	check(rdma_destroy_id(first), "rdma_destroy_id");
	close_channel();
}

static MEASURED void measured_section_idle(struct rdma_cm_id **ids, uint32_t count)
{
	while (count--)
		ids[count] = create();
}

static void run_idle(struct target target, uint32_t count)
{
	struct rdma_cm_id **ids = calloc(count, sizeof *ids);

	open_channel(target);
	check(rdma_destroy_id(create()), "rdma_destroy_id");
	section_begin();
	measured_section_idle(ids, count);
	section_end(count);
	while (count--)
		check(rdma_destroy_id(ids[count]), "rdma_destroy_id");
	close_channel();
	free(ids);
}

// A numeric address, with a channel of its own, its address and its route.
static void resolve_numeric(struct target target)
{
	open_channel(target);
	resolve_and_destroy();
	close_channel();
}

static MEASURED void measured_section_resolve(struct target target, uint32_t count)
{
	while (count--)
		resolve_numeric(target);
}

// The first address of the process.
static void run_first_address(struct target target, uint32_t count)
{
	section_begin();
	measured_section_resolve(target, count);
	section_end(count);
}

static void run_resolve(struct target target, uint32_t count)
{
	resolve_numeric(target);
	run_first_address(target, count);
}

const struct workload id_workloads[] = {
	{ "first-address", run_first_address },
	{ "id", run_id },
	{ "id-create", run_create },
	{ "id-destroy", run_destroy },
	{ "event", run_event },
	{ "idle-ids", run_idle },
	{ "resolve-numeric", run_resolve },
	{ "id-at-10", run_at_10 },
	{ "id-at-100", run_at_100 },
	{ "id-at-1000", run_at_1000 },
	{ "id-at-10000", run_at_10000 },
	{ NULL, NULL },
};
