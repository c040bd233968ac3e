/*
 * Prints the result of rdma_getaddrinfo() with an ibacm, for the guest suite to compare
 * with rdmacm's result.
 *
 *   acm [again] [node=NAME] [service=NAME] [flags=N] [family=N] [qp=N] [ps=N]
 *       [source=ADDRESS,PORT] [destination=ADDRESS,PORT] [route=HEXADECIMAL]
 *
 * A line for each entry of the list, bytes in hexadecimal, and an empty line.
 * `again` resolves a second time when a line has been read.
 */
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *value(const char *argument, const char *key)
{
	size_t length = strlen(key);

	return strncmp(argument, key, length) ? NULL : argument + length;
}

static struct sockaddr *address(const char *text, socklen_t *length)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char *host = strdup(text);
	char *port = strchr(host, ',');

	if (!port)
		exit(2);
	*port++ = '\0';
	if (getaddrinfo(host, port, &hints, &list))
		exit(2);
	*length = list->ai_addrlen;
	return list->ai_addr;
}

static void *bytes(const char *text, size_t *length)
{
	unsigned char *place = calloc(1, strlen(text) / 2);

	for (*length = 0; sscanf(text, "%2hhx", &place[*length]) == 1; text += 2)
		++*length;
	return place;
}

static void show(const char *key, const void *place, size_t length)
{
	const unsigned char *byte = place;

	printf(" %s=", key);
	while (length--)
		printf("%02x", *byte++);
}

static void list(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *list, *info;
	int failed = rdma_getaddrinfo(node, service, hints, &list);

	if (failed) {
		printf("failed=%d\n", failed);
		exit(EXIT_SUCCESS);
	}
	for (info = list; info; info = info->ai_next) {
		printf("family=%d qp=%d ps=%#x", info->ai_family, info->ai_qp_type,
		       info->ai_port_space);
		show("source", info->ai_src_addr, info->ai_src_len);
		show("destination", info->ai_dst_addr, info->ai_dst_len);
		show("route", info->ai_route, info->ai_route_len);
		show("connect", info->ai_connect, info->ai_connect_len);
		printf("\n");
	}
	printf("\n");
	fflush(stdout);
	rdma_freeaddrinfo(list);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { 0 };
	const char *node = NULL, *service = NULL, *text;
	int again = 0;
	size_t length;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "again")) {
			again = 1;
		} else if ((text = value(argv[i], "node="))) {
			node = text;
		} else if ((text = value(argv[i], "service="))) {
			service = text;
		} else if ((text = value(argv[i], "flags="))) {
			hints.ai_flags = atoi(text);
		} else if ((text = value(argv[i], "family="))) {
			hints.ai_family = atoi(text);
		} else if ((text = value(argv[i], "qp="))) {
			hints.ai_qp_type = atoi(text);
		} else if ((text = value(argv[i], "ps="))) {
			hints.ai_port_space = atoi(text);
		} else if ((text = value(argv[i], "source="))) {
			hints.ai_src_addr = address(text, &hints.ai_src_len);
		} else if ((text = value(argv[i], "destination="))) {
			hints.ai_dst_addr = address(text, &hints.ai_dst_len);
		} else if ((text = value(argv[i], "route="))) {
			hints.ai_route = bytes(text, &length);
			hints.ai_route_len = length;
		} else {
			fprintf(stderr, "acm: %s?\n", argv[i]);
			return 2;
		}
	}
	list(node, service, &hints);
	if (again) {
		getchar();
		list(node, service, &hints);
	}
	return EXIT_SUCCESS;
}
