/* Queue pairs, and the attributes that an id reports for them. */
#include "actor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void make_queue_pair(const struct words *words)
{
	struct rdma_cm_id *id = id_at(words, 1);
	struct thing *thing = new_thing(QUEUE_PAIR, word_at(words, 2));
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!id->verbs)
		give_up("no device for", thing->name);
	thing->cq = ibv_create_cq(id->verbs, 2, NULL, NULL, 0);
	if (!thing->cq)
		give_up("no completion queue", strerror(errno));
	attr.send_cq = attr.recv_cq = thing->cq;
	thing->qp = ibv_create_qp(id->pd, &attr);
	if (!thing->qp)
		give_up("no queue pair", strerror(errno));
	answer(0);
	printf("qp_num=%u\n", thing->qp->qp_num);
}

static enum ibv_qp_state state(const char *name)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
		if (!strcmp(names[i], name))
			return (enum ibv_qp_state)i;
	give_up("not a state", name);
}

void init_qp_attr(const struct words *words)
{
	struct ibv_qp_attr attr = { .qp_state = state(word_at(words, 2)) };
	int mask = 0;

	if (!answer(rdma_init_qp_attr(id_at(words, 1), &attr, &mask)))
		return;
	printf("mask=%#x\naccess=%#x\n", mask, attr.qp_access_flags);
	printf("path_mtu=%u\npath_mig_state=%u\nqkey=%#x\n", attr.path_mtu, attr.path_mig_state,
	       attr.qkey);
	printf("rq_psn=%u\nsq_psn=%u\ndest_qp_num=%u\n", attr.rq_psn, attr.sq_psn,
	       attr.dest_qp_num);
	show_ah("", &attr.ah_attr);
	show_ah("alt_", &attr.alt_ah_attr);
	printf("pkey_index=%u\nalt_pkey_index=%u\n", attr.pkey_index, attr.alt_pkey_index);
	printf("max_rd_atomic=%u\nmax_dest_rd_atomic=%u\nmin_rnr_timer=%u\n", attr.max_rd_atomic,
	       attr.max_dest_rd_atomic, attr.min_rnr_timer);
	printf("port_num=%u\ntimeout=%u\nretry_cnt=%u\nrnr_retry=%u\n", attr.port_num, attr.timeout,
	       attr.retry_cnt, attr.rnr_retry);
	printf("alt_port_num=%u\nalt_timeout=%u\n", attr.alt_port_num, attr.alt_timeout);
}

void modify(const struct words *words)
{
	struct ibv_qp *qp = find(QUEUE_PAIR, word_at(words, 1))->qp;
	struct ibv_qp_attr attr = { .qp_state = state(word_at(words, 3)) };
	int mask = 0;
	int error;

	if (rdma_init_qp_attr(id_at(words, 2), &attr, &mask)) {
		answer(-1);
		return;
	}
	error = ibv_modify_qp(qp, &attr, mask);
	errno = error;
	answer(error);
}
