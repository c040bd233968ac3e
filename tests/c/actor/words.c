/* Parses the words of a command. */
#include "actor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void give_up(const char *why, const char *what)
{
	fprintf(stderr, "actor: %s: %s\n", why, what);
	exit(EXIT_FAILURE);
}

const char *word_at(const struct words *words, int place)
{
	if (place >= words->count)
		give_up("too few words", words->count ? words->word[0] : "an empty line");
	return words->word[place];
}

const char *value_of(const struct words *words, const char *key)
{
	size_t size = strlen(key);

	for (int i = 1; i < words->count; i++)
		if (!strncmp(words->word[i], key, size) && words->word[i][size] == '=')
			return words->word[i] + size + 1;
	return NULL;
}

unsigned long number(const char *word)
{
	char *end;
	unsigned long value = strtoul(word, &end, 0);

	if (end == word || *end)
		give_up("not a number", word);
	return value;
}

unsigned long number_of(const struct words *words, const char *key, unsigned long otherwise)
{
	const char *value = value_of(words, key);

	return value ? number(value) : otherwise;
}

size_t bytes_of(const char *hexadecimal, uint8_t *bytes, size_t most)
{
	size_t count = strlen(hexadecimal) / 2;

	if (count > most)
		give_up("too many bytes", hexadecimal);
	for (size_t i = 0; i < count; i++) {
		unsigned int byte;

		if (sscanf(hexadecimal + 2 * i, "%2x", &byte) != 1)
			give_up("not hexadecimal", hexadecimal);
		bytes[i] = (uint8_t)byte;
	}
	return count;
}

void address_of(const char *ip, const char *port, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
	uint16_t wire_port = htons((uint16_t)number(port));

	memset(address, 0, sizeof *address);
	if (inet_pton(AF_INET, ip, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = wire_port;
	} else if (inet_pton(AF_INET6, ip, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = wire_port;
	} else {
		give_up("not an address", ip);
	}
}
