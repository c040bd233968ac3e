/* Multicast groups. */
#include "actor.h"

#include <string.h>

void join(const struct words *words)
{
	bool send_only = words->count > 4 && !strcmp(word_at(words, 4), "send_only");
	struct rdma_cm_id *id = id_at(words, 1);
	struct thing *thing = new_thing(GROUP, word_at(words, 3));
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
					: RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&thing->address,
	};

	address_of(word_at(words, 2), "0", &thing->address);
	/* A group whose join failed keeps its name, so that a script can leave it too. */
	answer(rdma_join_multicast_ex(id, &attr, thing));
}

void leave(const struct words *words)
{
	struct thing *group = find(GROUP, word_at(words, 2));

	answer(rdma_leave_multicast(id_at(words, 1), (struct sockaddr *)&group->address));
}
