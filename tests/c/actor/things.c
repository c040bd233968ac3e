/* The objects that commands have created, by name. */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct thing *things;

struct thing *new_thing(enum kind kind, const char *name)
{
	struct thing *thing = calloc(1, sizeof *thing);

	if (!thing || strlen(name) >= sizeof thing->name)
		give_up("no room for", name);
	thing->kind = kind;
	strcpy(thing->name, name);
	thing->next = things;
	things = thing;
	return thing;
}

struct thing *find(enum kind kind, const char *name)
{
	for (struct thing *thing = things; thing; thing = thing->next)
		if (thing->kind == kind && !strcmp(thing->name, name))
			return thing;
	give_up("nothing is called", name);
}

struct thing *any(enum kind kind)
{
	for (struct thing *thing = things; thing; thing = thing->next)
		if (thing->kind == kind)
			return thing;
	return NULL;
}

void destroy_thing(struct thing *thing)
{
	switch (thing->kind) {
	case CHANNEL:
		rdma_destroy_event_channel(thing->channel);
		break;
	case ID:
		rdma_destroy_id(thing->id);
		break;
	case QUEUE_PAIR:
		ibv_destroy_qp(thing->qp);
		ibv_destroy_cq(thing->cq);
		break;
	case GROUP:
		/* Destroyed with its id. */
		break;
	}
}

void forget(struct thing *thing)
{
	struct thing **place = &things;

	while (*place != thing)
		place = &(*place)->next;
	*place = thing->next;
	free(thing);
}

struct rdma_cm_id *id_at(const struct words *words, int place)
{
	return find(ID, word_at(words, place))->id;
}

struct rdma_event_channel *channel_at(const struct words *words, int place)
{
	return find(CHANNEL, word_at(words, place))->channel;
}
