/* Channels and ids: addresses, routes, options. */
#include "actor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void make_channel(const struct words *words)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (answer(channel ? 0 : -1))
		new_thing(CHANNEL, word_at(words, 1))->channel = channel;
}

static enum rdma_port_space port_space(const char *name)
{
	if (!strcmp(name, "tcp"))
		return RDMA_PS_TCP;
	if (!strcmp(name, "udp"))
		return RDMA_PS_UDP;
	if (!strcmp(name, "ipoib"))
		return RDMA_PS_IPOIB;
	if (!strcmp(name, "ib"))
		return RDMA_PS_IB;
	give_up("not a port space", name);
}

void make_id(const struct words *words)
{
	struct rdma_event_channel *channel = channel_at(words, 1);
	struct thing *thing = new_thing(ID, word_at(words, 2));

	if (!answer(rdma_create_id(channel, &thing->id, thing, port_space(word_at(words, 3)))))
		forget(thing);
}

void bind_address(const struct words *words)
{
	struct sockaddr_storage address;

	address_of(word_at(words, 2), word_at(words, 3), &address);
	answer(rdma_bind_addr(id_at(words, 1), (struct sockaddr *)&address));
}

void resolve_address(const struct words *words)
{
	const char *from = value_of(words, "from");
	struct sockaddr_storage source, destination;

	address_of(word_at(words, 2), word_at(words, 3), &destination);
	if (from)
		address_of(from, "0", &source);
	answer(rdma_resolve_addr(id_at(words, 1), from ? (struct sockaddr *)&source : NULL,
				 (struct sockaddr *)&destination, (int)number(word_at(words, 4))));
}

void resolve_route(const struct words *words)
{
	answer(rdma_resolve_route(id_at(words, 1), (int)number(word_at(words, 2))));
}

void listen_on(const struct words *words)
{
	answer(rdma_listen(id_at(words, 1), (int)number(word_at(words, 2))));
}

void set_option(const struct words *words)
{
	static const struct {
		const char *name;
		int number;
		size_t size;
	} options[] = {
		{ "tos", RDMA_OPTION_ID_TOS, sizeof(uint8_t) },
		{ "reuse", RDMA_OPTION_ID_REUSEADDR, sizeof(int) },
		{ "afonly", RDMA_OPTION_ID_AFONLY, sizeof(int) },
		{ "ack_timeout", RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t) },
	};
	struct rdma_cm_id *id = id_at(words, 1);
	int as_int = (int)number(word_at(words, 3));
	uint8_t as_byte = (uint8_t)as_int;

	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		if (!strcmp(options[i].name, word_at(words, 2))) {
			void *value = options[i].size == 1 ? (void *)&as_byte : (void *)&as_int;

			answer(rdma_set_option(id, RDMA_OPTION_ID, options[i].number, value,
					       options[i].size));
			return;
		}
	}
	give_up("not an option", word_at(words, 2));
}

void migrate(const struct words *words)
{
	answer(rdma_migrate_id(id_at(words, 1), channel_at(words, 2)));
}

void show_peer(const struct words *words)
{
	answer(0);
	show_address("dst", rdma_get_peer_addr(id_at(words, 1)));
}

void show_local(const struct words *words)
{
	struct rdma_cm_id *id = id_at(words, 1);

	answer(0);
	show_address("src", rdma_get_local_addr(id));
	printf("device=%s\n", id->verbs ? ibv_get_device_name(id->verbs->device) : "none");
	printf("port_num=%u\n", id->port_num);
	printf("ps=%#x\nqp_type=%d\n", id->ps, id->qp_type);
}

void show_gids(const struct words *words)
{
	struct rdma_cm_id *id = id_at(words, 1);

	answer(0);
	show_gid("sgid", &id->route.addr.addr.ibaddr.sgid);
	show_gid("dgid", &id->route.addr.addr.ibaddr.dgid);
	printf("pkey=%#x\n", be16toh(id->route.addr.addr.ibaddr.pkey));
}

/*
 * A flow label has 20 bits. The bit above them that librdmacm leaves in is the
 * record's raw traffic, which on RoCE the kernel fills with a bit of the peer's MAC
 * address.
 */
#define FLOW_LABEL 0xfffff

void show_paths(const struct words *words)
{
	struct rdma_cm_id *id = id_at(words, 1);

	answer(0);
	printf("paths=%d\n", id->route.num_paths);
	for (int i = 0; i < id->route.num_paths; i++) {
		struct ibv_sa_path_rec *path = &id->route.path_rec[i];

		show_gid("sgid", &path->sgid);
		show_gid("dgid", &path->dgid);
		printf("flow_label=%u\nhop_limit=%u\ntraffic_class=%u\n",
		       be32toh(path->flow_label) & FLOW_LABEL, path->hop_limit,
		       path->traffic_class);
		printf("reversible=%u\npkey=%#x\nsl=%u\n", !!path->reversible,
		       be16toh(path->pkey), path->sl);
		printf("mtu=%u\nrate=%u\npacket_life_time=%u\n", path->mtu, path->rate,
		       path->packet_life_time);
	}
}

void destroy(const struct words *words)
{
	struct thing *thing = find(ID, word_at(words, 1));

	if (answer(rdma_destroy_id(thing->id)))
		forget(thing);
}
