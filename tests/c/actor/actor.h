/*
 * Executes librdmacm commands, one at a time. Each input line is a command. Its answer
 * is `ok` or `errno=N`, then `key=value` lines, then a line with a single dot.
 *
 * Commands name the objects they create. A queue pair is separate from its id, so the
 * steps that librdmacm would take by itself are commands too.
 */
#ifndef ACTOR_H
#define ACTOR_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define MOST_WORDS 24

/* The words of a command; the first is its name. */
struct words {
	int count;
	char *word[MOST_WORDS];
};

/* The word at this index, which exists in a correct script. */
const char *word_at(const struct words *words, int place);
/* The value of a word `key=value`; NULL if there is none. */
const char *value_of(const struct words *words, const char *key);
/* Like value(), as a number. */
unsigned long number_of(const struct words *words, const char *key, unsigned long otherwise);
unsigned long number(const char *word);
/* Parses hexadecimal bytes; returns their number. */
size_t bytes_of(const char *hexadecimal, uint8_t *bytes, size_t most);
void address_of(const char *ip, const char *port, struct sockaddr_storage *address);
/* Ends the program after an error in the script or of the machine. */
_Noreturn void give_up(const char *why, const char *what);

enum kind { CHANNEL, ID, QUEUE_PAIR, GROUP };

/* An object that a command has created. */
struct thing {
	struct thing *next;
	enum kind kind;
	char name[16];
	union {
		struct rdma_event_channel *channel;
		struct rdma_cm_id *id;
		struct {
			struct ibv_qp *qp;
			struct ibv_cq *cq;
		};
		struct sockaddr_storage address;
	};
};

struct thing *new_thing(enum kind kind, const char *name);
struct thing *find(enum kind kind, const char *name);
/* The object of this name and kind; NULL if there is none. */
struct thing *any(enum kind kind);
void destroy_thing(struct thing *thing);
void forget(struct thing *thing);
struct rdma_cm_id *id_at(const struct words *words, int place);
struct rdma_event_channel *channel_at(const struct words *words, int place);

/* Prints the result of a call of librdmacm; returns whether it succeeded. */
bool answer(int result);
void show_address(const char *key, struct sockaddr *address);
void show_gid(const char *key, const union ibv_gid *gid);
void show_bytes(const char *key, const void *bytes, size_t count);
void show_ah(const char *prefix, const struct ibv_ah_attr *ah);

void make_channel(const struct words *words);
void make_id(const struct words *words);
void bind_address(const struct words *words);
void resolve_address(const struct words *words);
void resolve_route(const struct words *words);
void listen_on(const struct words *words);
void set_option(const struct words *words);
void migrate(const struct words *words);
void show_local(const struct words *words);
void show_peer(const struct words *words);
void show_gids(const struct words *words);
void show_paths(const struct words *words);
void destroy(const struct words *words);

void make_queue_pair(const struct words *words);
void init_qp_attr(const struct words *words);
void modify(const struct words *words);

void connect_to(const struct words *words);
void accept_request(const struct words *words);
void reject_request(const struct words *words);
void establish(const struct words *words);
void disconnect(const struct words *words);
void notify(const struct words *words);

void join(const struct words *words);
void leave(const struct words *words);

void next_event(const struct words *words);
/* Whether an event is pending now, and whether one arrives soon; it is not read. */
void no_event(const struct words *words);
void wait_for_event(const struct words *words);

#endif
