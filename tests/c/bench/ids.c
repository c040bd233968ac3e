// Ids and their events.
#include "bench.h"

#include <stdlib.h>

static struct rdma_event_channel *channel;
static struct sockaddr *destination;

static void open_channel(struct place place)
{
	channel = rdma_create_event_channel();
	check(!channel, "rdma_create_event_channel");
	place.port = "7471";
	destination = numeric(place, RAI_NOROUTE)->ai_dst_addr;
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

static void resolve_and_destroy(void)
{
	struct rdma_cm_id *id = create();

	check(rdma_resolve_addr(id, NULL, destination, TIMEOUT_MS), "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	check(rdma_destroy_id(id), "rdma_destroy_id");
}

static MEASURED void measured_section_ids(uint32_t count)
{
	while (count--)
		resolve_and_destroy();
}

static void run_id(struct place place, uint32_t count)
{
	open_channel(place);
	resolve_and_destroy();
	section_begin();
	measured_section_ids(count);
	section_end(count);
}

static MEASURED struct rdma_cm_id *measured_section_create(void)
{
	return create();
}

static MEASURED void measured_section_destroy(struct rdma_cm_id *id)
{
	check(rdma_destroy_id(id), "rdma_destroy_id");
}

static void run_create(struct place place, uint32_t count)
{
	open_channel(place);
	measured_section_destroy(create());
	while (count--) {
		section_begin();
		struct rdma_cm_id *id = measured_section_create();
		section_end(1);
		check(rdma_destroy_id(id), "rdma_destroy_id");
	}
}

static void run_destroy(struct place place, uint32_t count)
{
	open_channel(place);
	check(rdma_destroy_id(create()), "rdma_destroy_id");
	while (count--) {
		struct rdma_cm_id *id = create();

		section_begin();
		measured_section_destroy(id);
		section_end(1);
	}
}

static MEASURED struct rdma_cm_event *measured_section_event(void)
{
	struct rdma_cm_event *event;

	check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return event;
}

static void run_event(struct place place, uint32_t count)
{
	open_channel(place);
	while (count--) {
		struct rdma_cm_id *id = create();

		check(rdma_resolve_addr(id, NULL, destination, TIMEOUT_MS), "rdma_resolve_addr");
		section_begin();
		measured_section_event();
		section_end(1);
	}
}

static MEASURED void measured_section_idle(struct rdma_cm_id **ids, uint32_t count)
{
	while (count--)
		ids[count] = create();
}

static void run_idle(struct place place, uint32_t count)
{
	struct rdma_cm_id **ids = calloc(count, sizeof *ids);

	open_channel(place);
	check(rdma_destroy_id(create()), "rdma_destroy_id");
	section_begin();
	measured_section_idle(ids, count);
	section_end(count);
}

static MEASURED void measured_section_resolve(struct place place, uint32_t count)
{
	while (count--)
		rdma_freeaddrinfo(numeric(place, 0));
}

static void run_resolve(struct place place, uint32_t count)
{
	place.port = "7471";
	rdma_freeaddrinfo(numeric(place, 0));
	section_begin();
	measured_section_resolve(place, count);
	section_end(count);
}

const struct workload id_workloads[] = {
	{ "id", run_id },
	{ "id-create", run_create },
	{ "id-destroy", run_destroy },
	{ "event", run_event },
	{ "idle-ids", run_idle },
	{ "resolve-numeric", run_resolve },
	{ NULL, NULL },
};
