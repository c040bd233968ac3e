/*
 * Makes the same calls with librdmacm, for the guest suite to compare the output with
 * rdmacm's results.
 *
 *   peer bind ADDRESS PORT
 *   peer resolve ADDRESS PORT
 *   peer name NODE SERVICE active|passive
 *
 * Prints a line `key=value` for each step, up to the first that fails.
 */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *step)
{
	printf("%s=errno %d\n", step, errno);
	return EXIT_SUCCESS;
}

static void show_address(const char *key, struct sockaddr *address, int with_port)
{
	char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
	socklen_t size = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							: sizeof(struct sockaddr_in);

	getnameinfo(address, size, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV);
	if (with_port)
		printf("%s=%s %s\n", key, host, port);
	else
		printf("%s=%s\n", key, host);
}

static void show_gid(const char *key, const union ibv_gid *gid)
{
	printf("%s=", key);
	for (int i = 0; i < 16; i++)
		printf("%02x", gid->raw[i]);
	printf("\n");
}

static struct addrinfo *numeric(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;

	if (getaddrinfo(address, port, &hints, &list))
		exit(EXIT_FAILURE);
	return list;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel **channel)
{
	struct rdma_cm_id *id = NULL;

	*channel = rdma_create_event_channel();
	if (!*channel || rdma_create_id(*channel, &id, NULL, RDMA_PS_TCP)) {
		perror("peer");
		exit(EXIT_FAILURE);
	}
	return id;
}

/* Prints the next event; returns whether it is a success. */
static int succeeded(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	int status;

	if (rdma_get_cm_event(channel, &event))
		exit(EXIT_FAILURE);
	status = event->status;
	printf("event=%s %d\n", rdma_event_str(event->event), status);
	rdma_ack_cm_event(event);
	return status == 0;
}

static void show_id(struct rdma_cm_id *id)
{
	struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;

	printf("device=%s\n", id->verbs ? ibv_get_device_name(id->verbs->device) : "none");
	printf("port_number=%u\n", id->port_num);
	printf("pkey=%#x\n", be16toh(ib->pkey));
	printf("paths=%d\n", id->route.num_paths);
	for (int i = 0; i < id->route.num_paths; i++) {
		struct ibv_sa_path_rec *path = &id->route.path_rec[i];

		show_gid("path.sgid", &path->sgid);
		show_gid("path.dgid", &path->dgid);
		printf("path=mtu %u rate %u life %u pkey %#x sl %u hop %u class %u both %u\n",
		       path->mtu, path->rate, path->packet_life_time, be16toh(path->pkey),
		       path->sl, path->hop_limit, path->traffic_class, !!path->reversible);
	}
}

static int bind_address(const char *address, const char *port)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = make_id(&channel);

	if (rdma_bind_addr(id, numeric(address, port)->ai_addr))
		return failed("bind");
	show_address("source", rdma_get_local_addr(id), strcmp(port, "0") != 0);
	show_id(id);
	if (rdma_bind_addr(id, numeric(address, port)->ai_addr))
		return failed("bind again");
	return EXIT_SUCCESS;
}

static int resolve(const char *address, const char *port)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = make_id(&channel);

	if (rdma_resolve_addr(id, NULL, numeric(address, port)->ai_addr, 500))
		return failed("resolve_addr");
	if (!succeeded(channel))
		return EXIT_SUCCESS;
	show_gid("sgid", &id->route.addr.addr.ibaddr.sgid);
	if (rdma_resolve_route(id, 500))
		return failed("resolve_route");
	if (!succeeded(channel))
		return EXIT_SUCCESS;
	show_address("source", rdma_get_local_addr(id), 0);
	show_address("destination", rdma_get_peer_addr(id), 1);
	show_id(id);
	return EXIT_SUCCESS;
}

static int name(const char *node, const char *service, int passive)
{
	struct rdma_addrinfo hints = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info;

	if (rdma_getaddrinfo(node, service, &hints, &info))
		return failed("getaddrinfo");
	printf("kind=family %d qp %d ps %#x\n", info->ai_family, info->ai_qp_type,
	       info->ai_port_space);
	if (info->ai_src_len)
		show_address("source", info->ai_src_addr, 1);
	if (info->ai_dst_len)
		show_address("destination", info->ai_dst_addr, 1);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "bind"))
		return bind_address(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "resolve"))
		return resolve(argv[2], argv[3]);
	if (argc == 5 && !strcmp(argv[1], "name"))
		return name(argv[2], argv[3], !strcmp(argv[4], "passive"));
	fprintf(stderr, "usage: peer bind|resolve ADDRESS PORT\n"
			"       peer name NODE SERVICE active|passive\n");
	return 2;
}
