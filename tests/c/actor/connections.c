/* Connecting, accepting, rejecting and disconnecting. */
#include "actor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A command's parameters and the memory they point into. */
struct parameters {
	struct rdma_conn_param conn;
	uint8_t data[UINT8_MAX];
};

/* Also sets the id's local ECE, if there is one. */
static bool read_parameters(const struct words *words, struct parameters *parameters)
{
	const char *data = value_of(words, "data");
	const char *qp = value_of(words, "qp");
	const char *ece = value_of(words, "ece");
	struct ibv_ece options = { 0 };

	*parameters = (struct parameters){
		.conn = {
			.responder_resources = (uint8_t)number_of(words, "rr", 0),
			.initiator_depth = (uint8_t)number_of(words, "depth", 0),
			.flow_control = (uint8_t)number_of(words, "flow", 0),
			.retry_count = (uint8_t)number_of(words, "retry", 7),
			.rnr_retry_count = (uint8_t)number_of(words, "rnr", 7),
			.srq = (uint8_t)number_of(words, "srq", 0),
			.qp_num = (uint32_t)number_of(words, "qpn", 0),
		},
	};
	if (qp)
		parameters->conn.qp_num = find(QUEUE_PAIR, qp)->qp->qp_num;
	if (data) {
		parameters->conn.private_data = parameters->data;
		parameters->conn.private_data_len =
			(uint8_t)bytes_of(data, parameters->data, sizeof parameters->data);
	}
	if (!ece)
		return true;
	if (sscanf(ece, "%i:%i", (int *)&options.vendor_id, (int *)&options.options) != 2)
		give_up("not an ECE", ece);
	return !rdma_set_local_ece(id_at(words, 1), &options);
}

void connect_to(const struct words *words)
{
	struct parameters parameters;

	if (!read_parameters(words, &parameters))
		answer(-1);
	else
		answer(rdma_connect(id_at(words, 1), &parameters.conn));
}

void accept_request(const struct words *words)
{
	struct parameters parameters;

	if (!read_parameters(words, &parameters))
		answer(-1);
	else
		answer(rdma_accept(id_at(words, 1), &parameters.conn));
}

void reject_request(const struct words *words)
{
	struct rdma_cm_id *id = id_at(words, 1);
	const char *data = value_of(words, "data");
	uint8_t bytes[UINT8_MAX];
	uint8_t count = data ? (uint8_t)bytes_of(data, bytes, sizeof bytes) : 0;
	const void *start = data ? bytes : NULL;

	if (value_of(words, "because"))
		answer(rdma_reject_ece(id, start, count));
	else
		answer(rdma_reject(id, start, count));
}

void establish(const struct words *words)
{
	answer(rdma_establish(id_at(words, 1)));
}

void disconnect(const struct words *words)
{
	answer(rdma_disconnect(id_at(words, 1)));
}

void notify(const struct words *words)
{
	answer(rdma_notify(id_at(words, 1), (enum ibv_event_type)number(word_at(words, 2))));
}
