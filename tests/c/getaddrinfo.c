/*
 * Answers questions about names with rdma_getaddrinfo(), for the guest suite to compare
 * with rdmacm's answers. Each input line is a question.
 *
 * A question consists of tab-separated words `key=value`: node, service, and the hints
 * flags, family, qp, ps, src, dst, or hints=none. What is not given is NULL or 0.
 * Numbers may have names; addresses are
 *
 *   10.71.1.1 PORT
 *   fd71:1::1 PORT FLOW SCOPE
 *   ib GID PKEY FLOW SERVICE MASK SCOPE
 *
 * where all numbers except ports are hexadecimal, and flow is in memory order.
 *
 * An answer is `result=...`, a line of words for each entry, and a line with a single
 * dot.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Missing in headers before rdma-core 61. */
#ifndef RAI_SA
#define RAI_SA 0x10
#define RAI_DNS 0x20
#endif

struct word {
	const char *name;
	int number;
};

static const struct word FLAGS[] = {
	{ "PASSIVE", RAI_PASSIVE },
	{ "NUMERICHOST", RAI_NUMERICHOST },
	{ "NOROUTE", RAI_NOROUTE },
	{ "FAMILY", RAI_FAMILY },
	{ "SA", RAI_SA },
	{ "DNS", RAI_DNS },
	{ NULL, 0 },
};

static const struct word FAMILIES[] = {
	{ "INET", AF_INET },
	{ "INET6", AF_INET6 },
	{ "IB", AF_IB },
	{ NULL, 0 },
};

static const struct word QP_TYPES[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
	{ "UD", IBV_QPT_UD },
	{ "XRC_SEND", IBV_QPT_XRC_SEND },
	{ "XRC_RECV", IBV_QPT_XRC_RECV },
	{ NULL, 0 },
};

static const struct word PORT_SPACES[] = {
	{ "TCP", RDMA_PS_TCP },
	{ "UDP", RDMA_PS_UDP },
	{ "IPOIB", RDMA_PS_IPOIB },
	{ "IB", RDMA_PS_IB },
	{ NULL, 0 },
};

static const struct word EAI_CODES[] = {
	{ "EAI_ADDRFAMILY", EAI_ADDRFAMILY },
	{ "EAI_AGAIN", EAI_AGAIN },
	{ "EAI_FAIL", EAI_FAIL },
	{ "EAI_FAMILY", EAI_FAMILY },
	{ "EAI_MEMORY", EAI_MEMORY },
	{ "EAI_NODATA", EAI_NODATA },
	{ "EAI_NONAME", EAI_NONAME },
	{ "EAI_SERVICE", EAI_SERVICE },
	{ "EAI_SOCKTYPE", EAI_SOCKTYPE },
	{ NULL, 0 },
};

static int number_of(const struct word *word, const char *text)
{
	for (; word->name; word++)
		if (!strcmp(word->name, text))
			return word->number;
	return strtol(text, NULL, 0);
}

static void show(const char *key, const struct word *word, int number)
{
	while (word->name && word->number != number)
		word++;
	if (word->name)
		printf("\t%s=%s", key, word->name);
	else
		printf("\t%s=%d", key, number);
}

static int flags_of(char *text)
{
	int flags = 0;

	for (char *flag; (flag = strsep(&text, "+"));)
		flags |= number_of(FLAGS, flag);
	return flags;
}

static void show_flags(int flags)
{
	const char *between = "";

	printf("flags=");
	for (const struct word *word = FLAGS; word->name; word++) {
		if (!(flags & word->number))
			continue;
		printf("%s%s", between, word->name);
		between = "+";
		flags &= ~word->number;
	}
	if (flags || !*between)
		printf("%s%d", between, flags);
}

static void bad(const char *text)
{
	fprintf(stderr, "getaddrinfo: what is %s?\n", text);
	exit(EXIT_FAILURE);
}

/* Parses an address into `address`; returns its length. */
static socklen_t address_of(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	struct sockaddr_ib *ib = (struct sockaddr_ib *)address;
	unsigned long long service, mask, scope_id;
	unsigned int port, flow, scope, pkey;
	char host[64];

	memset(address, 0, sizeof *address);
	if (sscanf(text, "ib %63s %x %x %llx %llx %llx", host, &pkey, &flow, &service, &mask,
		   &scope_id) == 6 &&
	    inet_pton(AF_INET6, host, &ib->sib_addr) == 1) {
		ib->sib_family = AF_IB;
		ib->sib_pkey = htobe16(pkey);
		ib->sib_flowinfo = htobe32(flow);
		ib->sib_sid = htobe64(service);
		ib->sib_sid_mask = htobe64(mask);
		ib->sib_scope_id = scope_id;
		return sizeof *ib;
	}
	if (sscanf(text, "%63s %u %x %x", host, &port, &flow, &scope) == 4 &&
	    inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_flowinfo = flow;
		in6->sin6_scope_id = scope;
		return sizeof *in6;
	}
	if (sscanf(text, "%63s %u", host, &port) == 2 &&
	    inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return sizeof *in;
	}
	bad(text);
	return 0;
}

static void show_groups(const void *address)
{
	const unsigned char *byte = address;

	for (int i = 0; i < 16; i += 2)
		printf("%s%x", i ? ":" : "", byte[i] << 8 | byte[i + 1]);
}

static void show_address(const char *key, const struct sockaddr *address, socklen_t length)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)address;
	char host[INET_ADDRSTRLEN];

	printf("\t%s=", key);
	if (!length) {
		printf("-");
	} else if (address->sa_family == AF_INET && length == sizeof *in) {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		printf("%s %u", host, ntohs(in->sin_port));
	} else if (address->sa_family == AF_INET6 && length == sizeof *in6) {
		show_groups(&in6->sin6_addr);
		printf(" %u %x %x", ntohs(in6->sin6_port), in6->sin6_flowinfo,
		       in6->sin6_scope_id);
	} else if (address->sa_family == AF_IB && length == sizeof *ib) {
		printf("ib ");
		show_groups(&ib->sib_addr);
		printf(" %x %x %llx %llx %llx", be16toh(ib->sib_pkey), be32toh(ib->sib_flowinfo),
		       (unsigned long long)be64toh(ib->sib_sid),
		       (unsigned long long)be64toh(ib->sib_sid_mask),
		       (unsigned long long)ib->sib_scope_id);
	} else {
		printf("family %d of %u bytes", address->sa_family, length);
	}
}

static void show_entry(const struct rdma_addrinfo *entry)
{
	const char *src = entry->ai_src_canonname, *dst = entry->ai_dst_canonname;

	show_flags(entry->ai_flags);
	show("family", FAMILIES, entry->ai_family);
	show("qp", QP_TYPES, entry->ai_qp_type);
	show("ps", PORT_SPACES, entry->ai_port_space);
	show_address("src", entry->ai_src_addr, entry->ai_src_len);
	show_address("dst", entry->ai_dst_addr, entry->ai_dst_len);
	printf("\tsrc_name=%s\tdst_name=%s", src ? src : "-", dst ? dst : "-");
	printf("\troute=%zu\tconnect=%zu\n", entry->ai_route_len, entry->ai_connect_len);
}

static void answer(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	const struct word *code = EAI_CODES;
	struct rdma_addrinfo *list = NULL;
	int result;

	errno = 0;
	result = rdma_getaddrinfo(node, service, hints, &list);
	while (code->name && code->number != result)
		code++;
	if (result == 0)
		printf("result=ok\n");
	else if (code->name)
		printf("result=%s\n", code->name);
	else if (result == -1 || result == EAI_SYSTEM)
		printf("result=errno %d\n", errno);
	else
		printf("result=code %d\n", result);
	if (result == 0) {
		for (struct rdma_addrinfo *entry = list; entry; entry = entry->ai_next)
			show_entry(entry);
		rdma_freeaddrinfo(list);
	}
	printf(".\n");
	fflush(stdout);
}

static void read_question(char *line)
{
	struct sockaddr_storage src, dst;
	struct rdma_addrinfo hints = { 0 };
	const char *node = NULL, *service = NULL;
	int has_hints = 1;

	for (char *word; (word = strsep(&line, "\t"));) {
		char *key = strsep(&word, "=");

		if (!word)
			bad(key);
		else if (!strcmp(key, "node"))
			node = word;
		else if (!strcmp(key, "service"))
			service = word;
		else if (!strcmp(key, "hints"))
			has_hints = strcmp(word, "none") != 0;
		else if (!strcmp(key, "flags"))
			hints.ai_flags = flags_of(word);
		else if (!strcmp(key, "family"))
			hints.ai_family = number_of(FAMILIES, word);
		else if (!strcmp(key, "qp"))
			hints.ai_qp_type = number_of(QP_TYPES, word);
		else if (!strcmp(key, "ps"))
			hints.ai_port_space = number_of(PORT_SPACES, word);
		else if (!strcmp(key, "src")) {
			hints.ai_src_len = address_of(word, &src);
			hints.ai_src_addr = (struct sockaddr *)&src;
		} else if (!strcmp(key, "dst")) {
			hints.ai_dst_len = address_of(word, &dst);
			hints.ai_dst_addr = (struct sockaddr *)&dst;
		} else {
			bad(key);
		}
	}
	answer(node, service, has_hints ? &hints : NULL);
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	for (ssize_t length; (length = getline(&line, &size, stdin)) > 0;) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		read_question(line);
	}
	free(line);
	return EXIT_SUCCESS;
}
