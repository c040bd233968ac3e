/* Formats values of an answer. */
#include "actor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

bool answer(int result)
{
	if (result)
		printf("errno=%d\n", errno);
	else
		printf("ok\n");
	return !result;
}

void show_address(const char *key, struct sockaddr *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
	char ip[INET6_ADDRSTRLEN] = "";

	switch (address->sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof ip);
		printf("%s=%s\n%s_port=%u\n", key, ip, key, ntohs(v4->sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof ip);
		printf("%s=%s\n%s_port=%u\n", key, ip, key, ntohs(v6->sin6_port));
		break;
	default:
		printf("%s=none\n", key);
	}
}

void show_bytes(const char *key, const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;

	printf("%s=", key);
	for (size_t i = 0; i < count; i++)
		printf("%02x", byte[i]);
	printf("\n");
}

void show_gid(const char *key, const union ibv_gid *gid)
{
	show_bytes(key, gid->raw, sizeof gid->raw);
}

void show_ah(const char *prefix, const struct ibv_ah_attr *ah)
{
	printf("%sdlid=%u\n%ssl=%u\n%ssrc_path_bits=%u\n", prefix, ah->dlid, prefix, ah->sl, prefix,
	       ah->src_path_bits);
	printf("%sstatic_rate=%u\n%sis_global=%u\n%sah_port_num=%u\n", prefix, ah->static_rate,
	       prefix, ah->is_global, prefix, ah->port_num);
	printf("%s", prefix);
	show_gid("dgid", &ah->grh.dgid);
	printf("%sflow_label=%u\n%ssgid_index=%u\n", prefix, ah->grh.flow_label, prefix,
	       ah->grh.sgid_index);
	printf("%shop_limit=%u\n%straffic_class=%u\n", prefix, ah->grh.hop_limit, prefix,
	       ah->grh.traffic_class);
}
