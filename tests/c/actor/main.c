/* Reads and executes commands. */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOBODY 65534

static void give_privileges_up(const struct words *words)
{
	(void)words;
	answer(setuid(NOBODY));
}

static void reset(const struct words *words)
{
	static const enum kind order[] = { GROUP, ID, QUEUE_PAIR, CHANNEL };
	struct thing *thing;

	(void)words;
	/* In order of dependence: dependent objects first. */
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		while ((thing = any(order[i]))) {
			destroy_thing(thing);
			forget(thing);
		}
	}
	answer(0);
}

static const struct {
	const char *name;
	void (*run)(const struct words *words);
} commands[] = {
	{ "channel", make_channel },
	{ "id", make_id },
	{ "bind", bind_address },
	{ "resolve_addr", resolve_address },
	{ "resolve_route", resolve_route },
	{ "listen", listen_on },
	{ "option", set_option },
	{ "migrate", migrate },
	{ "local", show_local },
	{ "peer", show_peer },
	{ "gids", show_gids },
	{ "paths", show_paths },
	{ "destroy", destroy },
	{ "qp", make_queue_pair },
	{ "init_qp_attr", init_qp_attr },
	{ "modify", modify },
	{ "connect", connect_to },
	{ "accept", accept_request },
	{ "reject", reject_request },
	{ "establish", establish },
	{ "disconnect", disconnect },
	{ "notify", notify },
	{ "join", join },
	{ "leave", leave },
	{ "event", next_event },
	{ "no_event", no_event },
	{ "waiting", wait_for_event },
	{ "reset", reset },
	{ "unprivileged", give_privileges_up },
};

static void run(char *line)
{
	struct words words = { 0 };

	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		if (words.count == MOST_WORDS)
			give_up("too many words", line);
		words.word[words.count++] = word;
	}
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (!strcmp(commands[i].name, word_at(&words, 0))) {
			commands[i].run(&words);
			printf(".\n");
			fflush(stdout);
			return;
		}
	}
	give_up("no such command", words.word[0]);
}

int main(void)
{
	static char line[4096];

	while (fgets(line, sizeof line, stdin))
		run(line);
	return EXIT_SUCCESS;
}
