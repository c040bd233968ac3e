/* Reports the events of a channel. Each event is acknowledged at once. */
#include "actor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Longer than any expected event takes. */
#define PATIENCE 20000

static bool is_there(struct rdma_event_channel *channel, int milliseconds)
{
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };
	int ready = poll(&poller, 1, milliseconds);

	if (ready < 0)
		give_up("poll", strerror(errno));
	return ready == 1;
}

static const char *name_of(struct rdma_cm_id *id)
{
	return ((struct thing *)id->context)->name;
}

static void show_data(const void *data, uint8_t size)
{
	printf("data_len=%u\n", size);
	show_bytes("data", data, size);
}

static void show_conn(const struct rdma_conn_param *conn)
{
	printf("qp_num=%u\nresponder_resources=%u\ninitiator_depth=%u\n", conn->qp_num,
	       conn->responder_resources, conn->initiator_depth);
	printf("flow_control=%u\nretry_count=%u\nrnr_retry_count=%u\nsrq=%u\n", conn->flow_control,
	       conn->retry_count, conn->rnr_retry_count, conn->srq);
	show_data(conn->private_data, conn->private_data_len);
}

static void show_ud(const struct rdma_ud_param *ud)
{
	printf("qp_num=%u\nqkey=%#x\n", ud->qp_num, ud->qkey);
	show_ah("", &ud->ah_attr);
	show_data(ud->private_data, ud->private_data_len);
}

static void show_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece;

	if (rdma_get_remote_ece(id, &ece))
		give_up("no ECE", strerror(errno));
	printf("ece=%#x:%#x\n", ece.vendor_id, ece.options);
}

/* Names the child of a connect request, if the command names one. */
static void show_event(struct rdma_event_channel *channel, const char *child)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *dropped = NULL;

	if (!answer(rdma_get_cm_event(channel, &event)))
		return;
	printf("event=%s\nstatus=%d\n",
	       rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"), event->status);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		printf("id=%s\nlistener=%s\n", child ? child : "dropped",
		       name_of(event->listen_id));
		if (child) {
			struct thing *thing = new_thing(ID, child);

			thing->id = event->id;
			thing->id->context = thing;
		} else {
			dropped = event->id;
		}
	} else {
		printf("id=%s\n", name_of(event->id));
	}
	if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    event->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		printf("group=%s\n", ((struct thing *)event->param.ud.private_data)->name);
	if (event->id->qp_type == IBV_QPT_UD)
		show_ud(&event->param.ud);
	else
		show_conn(&event->param.conn);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		show_ece(event->id);
	rdma_ack_cm_event(event);
	if (dropped)
		rdma_destroy_id(dropped);
}

void next_event(const struct words *words)
{
	struct rdma_event_channel *channel = channel_at(words, 1);

	if (is_there(channel, PATIENCE))
		show_event(channel, value_of(words, "child"));
	else
		printf("none\n");
}

void no_event(const struct words *words)
{
	printf("%s\n", is_there(channel_at(words, 1), 0) ? "some" : "none");
}

void wait_for_event(const struct words *words)
{
	printf("%s\n", is_there(channel_at(words, 1), PATIENCE) ? "some" : "none");
}
